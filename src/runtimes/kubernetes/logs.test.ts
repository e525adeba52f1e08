import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createServer } from '#kernel/node-http.ts';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import type { LogLine } from '#runtimes/runtime.ts';
import { RECORD_KEY } from './api-server.fixture.ts';
import { Connection } from './connection.ts';
import { readLogs } from './logs.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const POD = { metadata: { name: 'p', namespace: 'n', labels: { 'quarterdeck.generation': '3' } }, status: {} };

/** Reads the last lines of a cluster whose one pod has this log. */
async function readFrom(log: string): Promise<LogLine[]> {
  const pods = JSON.stringify({ metadata: {}, items: [POD] });
  const server = createServer(({ url }, response) => void response.end(url?.includes('/log?') ? log : pods));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, serverName: null, authorities: null, insecure: false, certificate: null, token: 't' }; // prettier-ignore
  const connection = new Connection({ access, policy: async () => ['127.0.0.1'] });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
    return connection.close();
  });
  const handle = { format: 1, runtime: 'kubernetes', identity: newIdentity('test'), data: {} };
  const options = { tail: 10_000, follow: false, signal: AbortSignal.timeout(20_000) };
  const lines: LogLine[] = [];
  for await (const line of readLogs({ connection, installation: 'test', recordKey: RECORD_KEY }, handle, options))
    lines.push(line);
  return lines;
}

test('a line has the time, the pod and the generation that it came from', async () => {
  const lines = await readFrom('2026-01-02T03:04:05.6Z one\n2026-01-02T03:04:05.678901234Z two three\n');
  const common = { instance: 'p', generation: 3, stream: 'stdout' };
  expect(lines).toEqual([
    { ...common, at: '2026-01-02T03:04:05.600Z', text: 'one' },
    { ...common, at: '2026-01-02T03:04:05.678Z', text: 'two three' },
  ]);
});

test('what a node says of a log that it cannot read is no line', async () => {
  const lines = await readFrom(
    'unable to retrieve container logs for containerd://1\n2026-01-02T03:04:05.6Z one\nfailed to watch file "x": too many open files',
  );
  expect(lines.map(({ text }) => text)).toEqual(['one']);
});

test('a log that is larger than what is read has its newest lines, none of them longer than 64 KiB', async () => {
  const lineOf = (n: number) => `2026-01-02T03:04:05.${String(n).padStart(9, '0')}Z ${n} ${'x'.repeat(100_000)}\n`;
  const lines = await readFrom(Array.from({ length: 300 }, (_, n) => lineOf(n)).join(''));
  expect(lines.at(-1)!.text).toMatch(/^299 x+$/);
  expect(Math.max(...lines.map(({ text }) => text.length))).toBeLessThanOrEqual(64 * 1024);
  const characters = lines.reduce((sum, { text }) => sum + text.length, 0);
  expect([characters > 7 * 2 ** 20, characters <= 8 * 2 ** 20]).toEqual([true, true]);
});
