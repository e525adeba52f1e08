import { once } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { readSteadily, writeSteadily } from '#platform/move/steadily.ts';

const stalling = { name: 'the volume v', seconds: 300, unwindSeconds: 10 };
const STALLED = 'Nothing of the volume v moved for 300 s';
const forever = () => new Promise<never>(() => undefined);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Yields so many chunks, each after 200 s; then `end`. */
async function* chunks(count: number, end: () => Promise<unknown> = async () => undefined) {
  for (let n = 0; n < count; n++) {
    await new Promise((resolve) => setTimeout(resolve, 200_000));
    yield Buffer.from(String(n));
  }
  await end();
}

async function textOf(archive: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const chunk of archive) text += String(chunk);
  return text;
}

/** Lets an hour go by for a piece of work. */
async function inAnHour<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(3_600_000);
  return Promise.race([work, Promise.reject(new Error('It has not ended after an hour.'))]);
}

test('a volume that takes longer than the limit is read and written as long as something moves', async () => {
  expect(await inAnHour(textOf(readSteadily(stalling, () => chunks(6))))).toBe('012345');
  let text = '';
  await inAnHour(writeSteadily(stalling, chunks(6), async (archive) => void (text = await textOf(archive))));
  expect(text).toBe('012345');
});

test('a runtime that hangs while a volume is read ends the command, whether it listens to the signal or not', async () => {
  await expect(inAnHour(textOf(readSteadily(stalling, () => chunks(1, forever))))).rejects.toThrow(STALLED);
  const listening = (signal: AbortSignal) => chunks(1, () => once(signal, 'abort').then(() => Promise.reject(new Error('aborted')))); // prettier-ignore
  await expect(inAnHour(textOf(readSteadily(stalling, listening)))).rejects.toThrow(STALLED);
});

test('a runtime that hangs while a volume is written, or does not answer its end, ends the command', async () => {
  await expect(inAnHour(writeSteadily(stalling, chunks(1), forever))).rejects.toThrow(STALLED);
  const withoutAnswer = async (archive: AsyncIterable<Buffer>) => {
    await textOf(archive);
    await forever();
  };
  await expect(inAnHour(writeSteadily(stalling, chunks(1), withoutAnswer))).rejects.toThrow(STALLED);
});

test('a caller that leaves early ends the reading', async () => {
  let isGivenBack = false;
  async function* holding() {
    try {
      yield Buffer.from('a');
      yield Buffer.from('b');
    } finally {
      isGivenBack = true;
    }
  }
  for await (const chunk of readSteadily(stalling, holding)) {
    expect(String(chunk)).toBe('a');
    break;
  }
  expect(isGivenBack).toBe(true);
});

test('what a runtime says is passed on', async () => {
  const failing = async () => Promise.reject(new Error('no such volume'));
  await expect(inAnHour(textOf(readSteadily(stalling, () => chunks(1, failing))))).rejects.toThrow('no such volume');
  await expect(inAnHour(writeSteadily(stalling, chunks(1), failing))).rejects.toThrow('no such volume');
});
