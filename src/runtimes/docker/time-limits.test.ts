import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import Docker from 'dockerode';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limitCalls, secondsFor } from './time-limits.ts';

let directory: string;
let server: Server | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'engine-'));
});
afterEach(() => {
  vi.useRealTimers();
  server?.close();
  rmSync(directory, { recursive: true });
});

/** Engine that accepts each call, sends this part of an answer, and no more. */
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

test('an archive whose bytes stop coming ends in an error that names the call', async () => {
  const engine = await hanging('HTTP/1.1 200 OK\r\nContent-Type: application/x-tar\r\nContent-Length: 100\r\n\r\nhalf');
  const archive = (await engine.getContainer('c').getArchive({ path: '/' })) as Readable;
  await expect(buffer(archive)).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('did not answer GET /containers/c/archive within 0.2 s'),
  });
});

test('an upload may take as long as it goes on, and ends in an error when the engine says no more', async () => {
  const engine = await hanging('');
  let received = '';
  server!.on('connection', (socket) =>
    socket.on('data', (data) => {
      received += String(data);
      server!.emit('received');
    }),
  );
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  // Eight parts, with pauses of almost the whole time limit between them.
  async function* parts() {
    for (let part = 0; part < 8; part++) {
      yield Buffer.from(`part ${part};`);
      while (!received.includes(`part ${part};`)) await once(server!, 'received');
      vi.advanceTimersByTime(150);
    }
    vi.advanceTimersByTime(50);
  }
  await expect(engine.getContainer('c').putArchive(Readable.from(parts()), { path: '/' })).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('did not answer PUT /containers/c/archive within 0.2 s'),
  });
  expect(received).toContain('part 7;');
});

test('a call has the time that its work may take: an end its grace period, what is waited for none', () => {
  const of = (method: string, path: string, options = {}) => secondsFor({ method, path, options });
  expect(of('GET', '/containers/c/json?')).toBe(60);
  expect(of('POST', '/containers/c/stop?', { t: 300 })).toBe(360);
  expect(of('POST', '/containers/c/restart?', { t: 300 })).toBe(360);
  expect(of('GET', '/containers/c/logs?', { tail: 10, follow: false })).toBe(180);
  expect(of('PUT', '/containers/c/archive?')).toBe(180);
  expect(of('DELETE', '/containers/c?')).toBe(180);
  expect(of('POST', '/containers/c/wait?', { condition: 'removed' })).toBe(180);
  for (const path of ['/containers/c/wait?', '/events?', '/build?', '/images/create?'])
    expect(of('POST', path)).toBe(null);
  expect(of('GET', '/containers/c/logs?', { follow: true })).toBe(null);
});
