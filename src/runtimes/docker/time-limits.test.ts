import { createServer, type Server } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limitCalls, secondsFor } from './time-limits.ts';

let directory: string;
let server: Server | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'engine-'));
});
afterEach(() => {
  server?.close();
  rmSync(directory, { recursive: true });
});

/** An engine that takes each call, says this much of its answer, and no more. */
async function hanging(answer: string): Promise<Docker> {
  const socketPath = join(directory, 'socket');
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(answer));
  });
  await new Promise<void>((resolve) => server!.listen(socketPath, resolve));
  return limitCalls(new Docker({ socketPath }), () => 0.2);
}

test.each([
  ['no word', ''],
  ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"Id":'],
])('a call that the engine answers with %s ends in an error that names it', async (_what, answer) => {
  const engine = await hanging(answer);
  await expect(engine.getContainer('c').inspect()).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('did not answer GET /containers/c/json within 0.2 s'),
  });
});

test('a call has the time that its work may take: an end its grace period, what is waited for none', () => {
  const of = (method: string, path: string, options = {}) => secondsFor({ method, path, options });
  expect(of('GET', '/containers/c/json?')).toBe(60);
  expect(of('POST', '/containers/c/stop?', { t: 300 })).toBe(360);
  expect(of('DELETE', '/containers/c?')).toBe(180);
  expect(of('POST', '/containers/c/wait?', { condition: 'removed' })).toBe(180);
  for (const path of ['/containers/c/wait?', '/events?', '/build?', '/images/create?', '/containers/c/logs?'])
    expect(of('POST', path)).toBe(null);
});
