import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** Time between two pings. */
const PING_MS = 25_000;
/** Pings, about an hour of them, after which a client is cut off whose input nothing takes. */
const PAUSED_PINGS = 144;

export interface HeartbeatOptions {
  pingMs?: number | undefined;
  pausedPings?: number | undefined;
}

/**
 * Pings a client, and cuts off one of which no byte came between two pings. A paused socket reads nothing, not even the answers: there
 * the connection itself tells whether the client is gone, since pings that are never acknowledged end it. Answers what ends the pings.
 */
export function beginHeartbeat(
  socket: WebSocket,
  stream: Socket,
  { pingMs = PING_MS, pausedPings = PAUSED_PINGS }: HeartbeatOptions = {},
): () => void {
  let read = -1;
  let paused = 0;
  const timer = setInterval(() => {
    const wasPaused = paused > 0;
    paused = socket.isPaused ? paused + 1 : 0;
    const isAlive = socket.isPaused ? paused <= pausedPings : wasPaused || stream.bytesRead !== read;
    if (!isAlive) return socket.terminate();
    read = stream.bytesRead;
    socket.ping();
  }, pingMs);
  return () => clearInterval(timer);
}
