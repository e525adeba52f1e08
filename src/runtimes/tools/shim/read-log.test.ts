import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readShimLog, type ShimLogLine } from '#runtimes/tools/shim/read-log.ts';

let directory: string;
beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'read-log-'))));
afterAll(() => rmSync(directory, { recursive: true }));

/** Lines of one second each. Some are longer than what is read at once; umlauts lie across its borders. */
const LINES = Array.from({ length: 300 }, (_, n): ShimLogLine => {
  const time = new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString();
  return { time, stream: 'stdout', text: `${n} ${'ü'.repeat(n % 50 === 0 ? 90_000 : n)}` };
});
const timeOf = (n: number): string => LINES[n]!.time;

/** Writes the lines into files as a shim does: the newest file has no number. */
function write(...sizes: number[]): void {
  let at = 0;
  for (const [n, size] of sizes.entries()) {
    const lines = LINES.slice(at, (at += size)).map((line) => `${JSON.stringify(line)}\n`);
    const number = sizes.length - 1 - n;
    writeFileSync(join(directory, number === 0 ? 'log' : `log.${number}`), lines.join(''));
  }
}

test('the last lines are read whole, across files, whatever their length', () => {
  write(100, 120, 80);
  for (const tail of [1, 79, 80, 81, 200, 300, 1000]) expect(readShimLog(directory, tail)).toEqual(LINES.slice(-tail));
  expect(readShimLog(directory, 0)).toEqual([]);
});

test('a window has the lines from its beginning on and before its end, and the last of those', () => {
  write(100, 120, 80);
  const read = (tail: number, window: { from?: string; to?: string }) => readShimLog(directory, tail, window);
  expect(read(1000, { from: timeOf(90), to: timeOf(230) })).toEqual(LINES.slice(90, 230));
  expect(read(5, { from: timeOf(90), to: timeOf(230) })).toEqual(LINES.slice(225, 230));
  expect(read(1000, { to: timeOf(40) })).toEqual(LINES.slice(0, 40));
  expect(read(1000, { from: timeOf(299) })).toEqual(LINES.slice(299));
  expect(read(1000, { from: '2027-01-01T00:00:00.000Z' })).toEqual([]);
  expect(read(1000, { from: timeOf(7), to: timeOf(7) })).toEqual([]);
});

test('a line that is still being written is left out, and an absent or empty log has no lines', () => {
  write(3);
  writeFileSync(join(directory, 'log'), '{"time":"2026', { flag: 'a' });
  rmSync(join(directory, 'log.1'), { force: true });
  rmSync(join(directory, 'log.2'), { force: true });
  expect(readShimLog(directory, 10)).toEqual(LINES.slice(0, 3));
  writeFileSync(join(directory, 'log'), '');
  expect(readShimLog(directory, 10)).toEqual([]);
  expect(readShimLog(join(directory, 'absent'), 10)).toEqual([]);
});
