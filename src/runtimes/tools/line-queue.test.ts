import { expect, test } from 'vitest';
import { LineQueue } from '#runtimes/tools/line-queue.ts';
import type { LogLine } from '#runtimes/runtime.ts';

const lineOf = (n: number, text: string): LogLine => ({
  at: new Date(n).toISOString(),
  instance: 'one',
  generation: 1,
  stream: 'stdout',
  text,
});

/** Writes lines as a runtime does; `written` is their number so far. */
function startWriting(queue: LineQueue, count: number, text: string) {
  const writer = { written: 0, ended: Promise.resolve() };
  writer.ended = (async () => {
    for (let n = 0; n < count; n++) {
      queue.push(lineOf(n, text));
      writer.written++;
      await queue.room();
    }
  })();
  return writer;
}

/** Lets everything go on that waits for nothing but its turn. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

test.each([
  { what: 'many short lines', text: 'x', most: 1_000 },
  { what: 'a few long lines', text: 'x'.repeat(64 * 1024), most: 16 },
])('a reader that takes nothing holds up who writes $what', async ({ text, most }) => {
  const leave = new AbortController();
  const queue = new LineQueue(leave.signal);
  const writer = startWriting(queue, 3_000, text);
  await turn();
  expect(writer.written).toBe(most);
  const lines = queue.lines();
  await lines.next();
  await turn();
  // What the reader has been given counts until it comes back: no more than twice as much is ever held.
  expect(writer.written).toBeLessThanOrEqual(2 * most);
  leave.abort();
  await writer.ended;
});

test('a reader that goes on gets each line once and in order, however slow it is', async () => {
  const leave = new AbortController();
  const queue = new LineQueue(leave.signal);
  const writer = startWriting(queue, 5_000, 'x'.repeat(1_000));
  const times: number[] = [];
  for await (const { at } of queue.lines()) {
    times.push(Date.parse(at));
    if (times.length % 100 === 0) await turn();
    if (times.length === 5_000) leave.abort();
  }
  await writer.ended;
  expect(times).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
});

test('an error comes behind the lines before it, and an abort ends the queue without one', async () => {
  const failing = new LineQueue(new AbortController().signal);
  failing.push(lineOf(1, 'one'));
  failing.fail(new Error('gone'));
  const read: string[] = [];
  await expect(
    (async () => {
      for await (const { text } of failing.lines()) read.push(text);
    })(),
  ).rejects.toThrow('gone');
  expect(read).toEqual(['one']);
  const leave = new AbortController();
  const left = new LineQueue(leave.signal);
  const next = left.lines().next();
  leave.abort();
  left.fail(new Error('aborted'));
  expect(await next).toEqual({ done: true, value: undefined });
});
