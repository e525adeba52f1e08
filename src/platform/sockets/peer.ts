import { Readable, Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Principal } from '#platform/access/principal.ts';

/** Frames of a client that reads at once at most so many bytes ahead. */
const AHEAD_BYTES = 64 * 1024;
/** Bytes of the largest binary frame: clients drop the rest of a larger one. */
const FRAME_BYTES = 32_768;
/** Milliseconds after which a client that takes nothing is cut off. */
const STALL_MS = 30_000;

/** Ends a socket with a close code and a reason of its own. */
export class SocketEnd extends Error {
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.name = 'SocketEnd';
    this.code = code;
  }
}

export interface PeerParts {
  /** Aborted when the client or server goes away, or the caller may no longer have the socket. */
  signal: AbortSignal;
  who(): Principal;
  /** Frames that the client may send; undefined for none. */
  input: 'bytes' | 'binary' | undefined;
  stallMs?: number;
}

/** Peer of an open socket: the client. Neither writes to a slow client nor reads ahead of a slow reader without a limit. */
export class Peer {
  readonly signal: AbortSignal;
  readonly #socket: WebSocket;
  readonly #parts: PeerParts;

  constructor(socket: WebSocket, parts: PeerParts) {
    this.#socket = socket;
    this.#parts = parts;
    this.signal = parts.signal;
    // Nothing is read before `input` is called.
    if (parts.input) socket.pause();
  }

  /** Returns the caller as they are now. */
  who(): Principal {
    return this.#parts.who();
  }

  /** Sends a frame. Resolves when the next one may follow; for a client that is gone at once. Cuts off one that takes nothing. */
  async send(data: string | Buffer): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    const written = new Promise<void>((resolve) => socket.send(data, () => resolve()));
    if (socket.bufferedAmount < AHEAD_BYTES) return;
    const stalled = setTimeout(() => socket.terminate(), this.#parts.stallMs ?? STALL_MS);
    try {
      await written;
    } finally {
      clearTimeout(stalled);
    }
  }

  /** Returns the client's frames as a stream of bytes. Ends when the client goes away. */
  input(): Readable {
    const socket = this.#socket;
    const input = new Readable({ highWaterMark: AHEAD_BYTES, read: () => socket.resume() });
    let ended = false;
    const end = () => {
      if (!ended) input.push(null);
      ended = true;
    };
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (ended || input.destroyed) return;
      if (this.#parts.input === 'binary' && !isBinary) {
        ended = true;
        input.destroy(new SocketEnd(1003, 'Only binary frames are taken here.'));
      } else if (data.length > 0 && !input.push(data)) socket.pause();
    });
    // A paused socket never tells that it was closed.
    input.once('close', () => socket.resume());
    socket.once('close', end);
    this.signal.addEventListener('abort', end, { once: true });
    if (this.signal.aborted) end();
    return input;
  }

  /** Returns a stream that sends bytes in binary frames, no faster than the client takes them. */
  output(): Writable {
    return new Writable({
      highWaterMark: FRAME_BYTES,
      write: (chunk: Buffer, _encoding, done) => {
        void this.#sendFrames(chunk).then(() => done(), done);
      },
    });
  }

  async #sendFrames(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += FRAME_BYTES) await this.send(chunk.subarray(at, at + FRAME_BYTES));
  }
}
