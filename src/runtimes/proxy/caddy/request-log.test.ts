import { appendFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  createRequestFolder,
  readRequestLog,
  requestFolder,
  type LogPosition,
} from '#runtimes/proxy/caddy/request-log.ts';

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'request-log-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  createRequestFolder(directory);
  file = join(requestFolder(directory), 'requests.log');
});

const lineOf = (serviceId: string, status = 200) =>
  `${JSON.stringify({ logger: `http.log.access.${serviceId}`, status, duration: 0.02 })}\n`;

/** Reads from a position; answers the next one, and the number of answers of each service. */
async function read(last: LogPosition | null): Promise<[LogPosition, Record<string, number>]> {
  const { position, tallies } = await readRequestLog(directory, last, []);
  const counts = [...tallies].map(([id, { statuses }]) => [id, statuses.reduce((sum, count) => sum + count)] as const);
  return [position, Object.fromEntries(counts)];
}

test('without a position nothing is counted, and the next count begins at the end', async () => {
  appendFileSync(file, lineOf('a'));
  const [position, counts] = await read(null);
  expect(counts).toEqual({});
  appendFileSync(file, lineOf('a') + lineOf('b'));
  expect((await read(position))[1]).toEqual({ a: 1, b: 1 });
});

test('the first file is counted from its beginning where there was none', async () => {
  const [position] = await read(null);
  appendFileSync(file, lineOf('a'));
  expect((await read(position))[1]).toEqual({ a: 1 });
});

test('what was written before and after the file was renamed is counted once', async () => {
  appendFileSync(file, lineOf('a'));
  const [position] = await read(null);
  for (const name of ['requests-1.log', 'requests-2.log']) {
    appendFileSync(file, lineOf('a'));
    renameSync(file, join(requestFolder(directory), name));
  }
  appendFileSync(file, lineOf('a'));
  const [next, counts] = await read(position);
  expect(counts).toEqual({ a: 3 });
  expect((await read(next))[1]).toEqual({});
});

test('all files that are left are counted where that of the position is gone', async () => {
  appendFileSync(file, lineOf('a'));
  const [position] = await read(null);
  const old = join(requestFolder(directory), 'requests-1.log');
  renameSync(file, old);
  appendFileSync(file, lineOf('b'));
  rmSync(old);
  expect((await read(position))[1]).toEqual({ b: 1 });
});

test('a line that is being written is counted once it is complete', async () => {
  const [position] = await read(null);
  const line = lineOf('a');
  appendFileSync(file, line.slice(0, 20));
  const [next, counts] = await read(position);
  expect(counts).toEqual({});
  appendFileSync(file, line.slice(20));
  expect((await read(next))[1]).toEqual({ a: 1 });
});

test('a service without requests is counted with none', async () => {
  const { tallies } = await readRequestLog(directory, null, ['a']);
  expect([...tallies].map(([serviceId, { statuses }]) => [serviceId, ...statuses])).toEqual([['a', 0, 0, 0, 0, 0]]);
});

test('lines that are damaged or of no service are passed over', async () => {
  const [position] = await read(null);
  const unnamed = `${JSON.stringify({ logger: 'http.log.access', status: 200, duration: 1 })}\n`;
  appendFileSync(file, `{"logger":\n\nnull\n{}\n${unnamed}${lineOf('a', 0)}`);
  expect((await read(position))[1]).toEqual({ a: 1 });
});
