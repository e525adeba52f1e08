import type { Socket } from 'node:net';
import { rawUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import type { RawUpstream } from '#runtimes/proxy/contract/upstreams.ts';

const PREFACE_BYTES = 24;
const HEADERS = 1;
const SETTINGS = 4;
const END_STREAM = 1;
const END_HEADERS = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

/** Header block of literal fields without indexing (RFC 7541 §6.2.2); names and values have less than 127 bytes. */
const block = (fields: [string, string][]): Buffer =>
  Buffer.concat(
    fields.map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name, 'latin1'),
        Buffer.from([value.length]),
        Buffer.from(value, 'latin1'),
      ]),
    ),
  );

/** HEADERS frame with the given fields, valid or not. */
export const headers = (stream: number, fields: [string, string][], end = false): Buffer =>
  frame(HEADERS, END_HEADERS | (end ? END_STREAM : 0), stream, block(fields));

export const data = (stream: number, text: string, end = false): Buffer => frame(0, end ? END_STREAM : 0, stream, text);

/** Starts an upstream that answers each stream of HTTP/2 with raw bytes. */
export function rawHttp2Upstream(answer: (stream: number, socket: Socket) => Buffer): Promise<RawUpstream> {
  const pending = new Map<Socket, Buffer>();
  return rawUpstream((socket, packet) => {
    let bytes = Buffer.concat([pending.get(socket) ?? Buffer.alloc(0), Buffer.from(packet, 'latin1')]);
    if (!pending.has(socket)) {
      if (bytes.length < PREFACE_BYTES) return;
      socket.write(frame(SETTINGS, 0, 0));
      bytes = bytes.subarray(PREFACE_BYTES);
    }
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const [type, flags, stream] = [bytes[3]!, bytes[4]!, bytes.readUInt32BE(5) & 0x7fffffff];
      if (type === SETTINGS && (flags & 1) === 0) socket.write(frame(SETTINGS, 1, 0));
      if (type === HEADERS) socket.write(answer(stream, socket));
      bytes = bytes.subarray(9 + bytes.readUIntBE(0, 3));
    }
    pending.set(socket, bytes);
  });
}
