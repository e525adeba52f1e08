import { appendFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { followShimLog } from '#runtimes/tools/shim/follow-log.ts';
import { endOfLog, readShimLog, type ShimLogLine } from '#runtimes/tools/shim/read-log.ts';
import { WholeLog } from '#runtimes/tools/shim/whole-log.ts';

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

test('the last lines are read whole, across files, whatever their length', async () => {
  write(100, 120, 80);
  for (const tail of [1, 79, 80, 81, 200, 300, 1000])
    expect(await readShimLog(directory, tail)).toEqual(LINES.slice(-tail));
  expect(await readShimLog(directory, 0)).toEqual([]);
});

test('a window has the lines from its beginning on and before its end, and the last of those', async () => {
  write(100, 120, 80);
  const read = (tail: number, window: { from?: string; to?: string }) => readShimLog(directory, tail, window);
  expect(await read(1000, { from: timeOf(90), to: timeOf(230) })).toEqual(LINES.slice(90, 230));
  expect(await read(5, { from: timeOf(90), to: timeOf(230) })).toEqual(LINES.slice(225, 230));
  expect(await read(1000, { to: timeOf(40) })).toEqual(LINES.slice(0, 40));
  expect(await read(1000, { from: timeOf(299) })).toEqual(LINES.slice(299));
  expect(await read(1000, { from: '2027-01-01T00:00:00.000Z' })).toEqual([]);
  expect(await read(1000, { from: timeOf(7), to: timeOf(7) })).toEqual([]);
});

test('a line that is still being written is left out, and an absent or empty log has no lines', async () => {
  write(3);
  writeFileSync(join(directory, 'log'), '{"time":"2026', { flag: 'a' });
  rmSync(join(directory, 'log.1'), { force: true });
  rmSync(join(directory, 'log.2'), { force: true });
  expect(await readShimLog(directory, 10)).toEqual(LINES.slice(0, 3));
  writeFileSync(join(directory, 'log'), '');
  expect(await readShimLog(directory, 10)).toEqual([]);
  expect(await readShimLog(join(directory, 'absent'), 10)).toEqual([]);
});

/** Returns the lines since the last call. */
async function nextOf(whole: WholeLog): Promise<ShimLogLine[]> {
  const lines: ShimLogLine[] = [];
  for await (const line of whole.next()) lines.push(line);
  return lines;
}

/** Log of its own, to which single lines are written. */
function makeLog(name: string) {
  const folder = join(directory, name);
  mkdirSync(folder);
  const file = join(folder, 'log');
  const append = (from: number, to: number) =>
    appendFileSync(
      file,
      LINES.slice(from, to)
        .map((line) => `${JSON.stringify(line)}\n`)
        .join(''),
    );
  /** Rotates as a shim with this number of files does. */
  const rotate = (files = 3) => {
    const numbered = (n: number) => (n === 0 ? file : `${file}.${n}`);
    rmSync(numbered(files - 1), { force: true });
    for (let n = files - 2; n >= 0; n--) if (existsSync(numbered(n))) renameSync(numbered(n), numbered(n + 1));
  };
  return { folder, file, append, rotate };
}

/** Follows a log up to a number of lines; `onLine` is called with the number of lines so far. */
async function followUpTo(
  count: number,
  folder: string,
  { end = null, onLine }: { end?: ReturnType<typeof endOfLog>; onLine?: (count: number) => void } = {},
): Promise<ShimLogLine[]> {
  const leave = new AbortController();
  const followed: ShimLogLine[] = [];
  for await (const line of followShimLog(folder, leave.signal, end)) {
    followed.push(line);
    onLine?.(followed.length);
    if (followed.length === count) leave.abort();
  }
  return followed;
}

test('what is read up to an end and followed from there is each line once, also where the file was rotated in between', async () => {
  const { folder, append, rotate } = makeLog('end');
  append(0, 10);
  const end = endOfLog(folder);
  append(10, 20);
  rotate();
  append(20, 30);
  expect(await readShimLog(folder, 100, {}, end)).toEqual(LINES.slice(0, 10));
  const followed = await followUpTo(30, folder, { end, onLine: (count) => count === 10 && append(30, 40) });
  expect(followed).toEqual(LINES.slice(10, 40));
});

test('a followed log has the lines of every file, however often it is rotated between two reads', async () => {
  const { folder, append, rotate } = makeLog('rotations');
  append(0, 10);
  const rotateTwice = () => {
    append(10, 20);
    rotate();
    append(20, 30);
    rotate();
    append(30, 40);
  };
  const followed = await followUpTo(40, folder, { onLine: (count) => count === 10 && rotateTwice() });
  expect(followed).toEqual(LINES.slice(0, 40));
});

test('a log that is followed from its beginning has the lines of files that were rotated before', async () => {
  const { folder, append, rotate } = makeLog('before');
  for (const from of [0, 10, 20]) {
    if (from > 0) rotate();
    append(from, from + 10);
  }
  expect(await followUpTo(30, folder)).toEqual(LINES.slice(0, 30));
});

test('where rotations have removed the file that was read, a followed log goes on with the oldest one that is kept', async () => {
  const { folder, append, rotate } = makeLog('dropped');
  append(0, 10);
  const end = endOfLog(folder)!;
  for (const from of [10, 20, 30]) {
    rotate();
    append(from, from + 10);
  }
  expect(await readShimLog(folder, 100, {}, end)).toEqual([]);
  expect(await followUpTo(30, folder, { end })).toEqual(LINES.slice(10, 40));
});

test('a rotation that was cut off hides no file', async () => {
  const { folder, file, append, rotate } = makeLog('cut-off');
  append(0, 10);
  rotate(4);
  append(10, 20);
  renameSync(`${file}.1`, `${file}.2`);
  expect(await readShimLog(folder, 100)).toEqual(LINES.slice(0, 20));
  expect(await followUpTo(20, folder)).toEqual(LINES.slice(0, 20));
  expect(await nextOf(new WholeLog(folder))).toEqual(LINES.slice(0, 20));
});

test.each([
  ['text that is no JSON', 'damaged'],
  ['zeros, as after a loss of power', '\0'.repeat(300)],
  ['JSON that is no line', '{"time":5,"stream":"stdout","text":"x"}'],
  ['null', 'null'],
  ['a line without its end', '{"time":"2026-01-01T00:00:00.000Z","str'],
  ['a line longer than any that is written', 'x'.repeat(3 * 2 ** 20)],
])('%s is left out of a log, and the lines around it are there', async (what, damage) => {
  const { folder, file, append } = makeLog(`damaged-${what.replaceAll(' ', '-')}`);
  const whole = new WholeLog(folder);
  append(0, 5);
  appendFileSync(file, `${damage}\n`);
  append(5, 10);
  expect(await readShimLog(folder, 100)).toEqual(LINES.slice(0, 10));
  expect(await readShimLog(folder, 6)).toEqual(LINES.slice(4, 10));
  expect(await nextOf(whole)).toEqual(LINES.slice(0, 10));
  expect(await followUpTo(10, folder)).toEqual(LINES.slice(0, 10));
});

test('long lines do not fill the memory: the last lines end where they are too many characters', async () => {
  const { folder, file } = makeLog('long');
  const line = (n: number): ShimLogLine => ({ ...LINES[n]!, text: 'x'.repeat(900_000) });
  for (let n = 0; n < 20; n++) appendFileSync(file, `${JSON.stringify(line(n))}\n`);
  expect((await readShimLog(folder, 100)).map(({ time }) => time)).toEqual(LINES.slice(11, 20).map(({ time }) => time));
});

test('the log of an execution is read once, also where a file got the number of a removed one', async () => {
  const { folder, append, rotate } = makeLog('whole');
  const whole = new WholeLog(folder);
  const read: ShimLogLine[] = [];
  for (let from = 0; from < 100; from += 10) {
    append(from, from + 10);
    read.push(...(await nextOf(whole)));
    rotate(2);
  }
  expect(read).toEqual(LINES.slice(0, 100));
});

test('a followed log ends when its folder is removed, behind its last line', async () => {
  const { folder, append } = makeLog('removed');
  append(0, 5);
  const followed: ShimLogLine[] = [];
  for await (const line of followShimLog(folder, new AbortController().signal)) {
    followed.push(line);
    if (followed.length === 5) rmSync(folder, { recursive: true });
  }
  expect(followed).toEqual(LINES.slice(0, 5));
});

test('other work of the process goes on while a long log is read', async () => {
  const { folder, file } = makeLog('large');
  const line = `${JSON.stringify({ ...LINES[0]!, text: 'x'.repeat(10_000) })}\n`;
  writeFileSync(file, line.repeat(1000));
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  expect(await readShimLog(folder, 800)).toHaveLength(800);
  expect(turns).toBeGreaterThan(3);
  turns = 0;
  for await (const { text } of new WholeLog(folder).next()) expect(text).toHaveLength(10_000);
  expect(turns).toBeGreaterThan(3);
  clearInterval(timer);
});
