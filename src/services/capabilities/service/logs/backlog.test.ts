import { afterEach, expect, test, vi } from 'vitest';
import { Backlog } from '#services/capabilities/service/logs/backlog.ts';

const open = () => new AbortController().signal;

/** Adds numbered lines as a log does, from `first` on; `written` is their number so far. */
function startWriting(backlog: Backlog, count: number, isKept: boolean, first = 0) {
  const writer = { written: 0, ended: Promise.resolve() };
  writer.ended = (async () => {
    for (; writer.written < count; writer.written++) {
      await backlog.room(isKept);
      backlog.add(`${first + writer.written}\n`, isKept);
    }
  })();
  return writer;
}

/** Takes everything; returns the lines, with the number of those that were skipped in their places. */
async function readAll(backlog: Backlog): Promise<(string | { skipped: number })[]> {
  const read: (string | { skipped: number })[] = [];
  for (let part; (part = await backlog.take(1_000)) !== undefined;) {
    if (part.skipped > 0) read.push({ skipped: part.skipped });
    read.push(...part.text.split('\n').filter((line) => line !== ''));
  }
  return read;
}

async function read(backlog: Backlog): Promise<{ lines: string[]; skipped: number }> {
  const all = await readAll(backlog);
  const lines = all.filter((one) => typeof one === 'string');
  return { lines, skipped: all.reduce((sum, one) => sum + (typeof one === 'string' ? 0 : one.skipped), 0) };
}

const numbers = (first: number, count: number): string[] => Array.from({ length: count }, (_, n) => String(first + n));

afterEach(() => void vi.useRealTimers());

test('stored lines wait for a slow client as long as it takes', async () => {
  vi.useFakeTimers();
  const backlog = new Backlog(open());
  const writer = startWriting(backlog, 5_000, true);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(writer.written).toBe(1_000);
  vi.useRealTimers();
  const reading = readAll(backlog);
  await writer.ended;
  backlog.end();
  expect(await reading).toEqual(numbers(0, 5_000));
});

test('new lines displace no stored ones, and are skipped behind them', async () => {
  const backlog = new Backlog(open(), 1);
  await startWriting(backlog, 400, true).ended;
  await startWriting(backlog, 5_000, false, 400).ended;
  backlog.end();
  const all = await readAll(backlog);
  expect(all.slice(0, 400)).toEqual(numbers(0, 400));
  const [skipped, ...rest] = all.slice(400);
  expect(skipped).toEqual({ skipped: 5_000 - rest.length });
  expect(rest.length).toBeGreaterThan(0);
  expect(rest).toEqual(numbers(5_400 - rest.length, rest.length));
});

test('where stored lines alone fill the backlog, new ones wait for the client', async () => {
  vi.useFakeTimers();
  const backlog = new Backlog(open());
  await startWriting(backlog, 1_000, true).ended;
  const writer = startWriting(backlog, 10, false, 1_000);
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(writer.written).toBe(0);
  vi.useRealTimers();
  const reading = readAll(backlog);
  await writer.ended;
  backlog.end();
  expect(await reading).toEqual(numbers(0, 1_010));
});

test('lines are skipped at once only after the client was waited for', async () => {
  vi.useFakeTimers();
  const backlog = new Backlog(open());
  const writer = startWriting(backlog, 2_000, false);
  await vi.advanceTimersByTimeAsync(4_900);
  expect(writer.written).toBe(1_000);
  await vi.advanceTimersByTimeAsync(200);
  expect(writer.written).toBe(2_000);
});

test('of new lines the oldest are skipped and counted, and the newest are there', async () => {
  const backlog = new Backlog(open(), 1);
  await startWriting(backlog, 5_000, false).ended;
  backlog.end();
  const { lines, skipped } = await read(backlog);
  expect(lines.length).toBeLessThanOrEqual(1_000);
  expect(lines.length + skipped).toBe(5_000);
  expect(lines.at(-1)).toBe('4999');
});

test('long lines are counted by their characters: no more than 2 MiB ever wait', async () => {
  const backlog = new Backlog(open(), 1);
  const text = `${'x'.repeat(400_000)}\n`;
  for (let n = 0; n < 100; n++) {
    await backlog.room(false);
    backlog.add(text, false);
  }
  backlog.end();
  let characters = 0;
  let skipped = 0;
  for (let part; (part = await backlog.take(1_000)) !== undefined;) {
    characters += part.text.length;
    skipped += part.skipped;
  }
  expect(characters).toBeLessThan(2 * 2 ** 20);
  expect(characters).toBe((100 - skipped) * text.length);
});

test('a client that keeps up loses nothing, however many lines come', async () => {
  const backlog = new Backlog(open(), 1_000);
  const writing = startWriting(backlog, 20_000, false).ended.then(() => backlog.end());
  const [{ lines, skipped }] = await Promise.all([read(backlog), writing]);
  expect({ skipped, count: lines.length }).toEqual({ skipped: 0, count: 20_000 });
});

test('an error is thrown behind the lines before it, and an abort ends both sides at once', async () => {
  const failing = new Backlog(open());
  failing.add('one\n', false);
  failing.end({ error: new Error('gone') });
  expect((await failing.take(1))!.text).toBe('one\n');
  await expect(failing.take(1)).rejects.toThrow('gone');
  const leaving = new AbortController();
  const left = new Backlog(leaving.signal);
  const taken = left.take(60_000);
  leaving.abort();
  expect(await taken).toBeUndefined();
});
