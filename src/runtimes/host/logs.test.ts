import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Layout } from '#runtimes/host/layout.ts';
import { followService } from '#runtimes/host/logs.ts';
import type { LogLine } from '#runtimes/runtime.ts';

let folder: string;
let layout: Layout;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'host-logs-'));
  layout = new Layout(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

const lineOf = (text: string): string =>
  `${JSON.stringify({ time: '2026-01-01T00:00:00.000Z', stream: 'stdout', text })}\n`;

/** Makes the folder of an instance; returns the path of its log. */
function makeInstance(serviceId: string, n: number): string {
  const directory = layout.instance({ serviceId, generation: 1, n });
  mkdirSync(directory, { recursive: true });
  return join(directory, 'log');
}

/** Follows a service; returns its lines so far and the end of the reading. */
function follow(serviceId: string) {
  const leave = new AbortController();
  const lines: LogLine[] = [];
  const ended = (async () => {
    for await (const line of followService(layout, serviceId, { tail: 10, follow: true, signal: leave.signal }))
      lines.push(line);
  })();
  ended.catch(() => undefined);
  return { texts: () => lines.map(({ text }) => text), ended, leave: () => leave.abort() };
}

test('a damaged line in a log file ends neither the log nor the process', async () => {
  const log = makeInstance('damaged', 0);
  appendFileSync(log, `${lineOf('first')}damaged\n`);
  const following = follow('damaged');
  await expect.poll(following.texts).toEqual(['first']);
  appendFileSync(log, `{"time":"2026\n${lineOf('second')}`);
  await expect.poll(following.texts).toEqual(['first', 'second']);
  following.leave();
  await following.ended;
});

test('a log that cannot be read ends what follows it with the error, and leaves the process alone', async () => {
  appendFileSync(makeInstance('unreadable', 0), lineOf('first'));
  const following = follow('unreadable');
  await expect.poll(following.texts).toEqual(['first']);
  // A folder in place of the file: root may open any file, but reads no folder.
  mkdirSync(makeInstance('unreadable', 1));
  await expect(following.ended).rejects.toThrow('EISDIR');
});

test('instances that cannot be listed end what follows them with the error, and leave the process alone', async () => {
  appendFileSync(makeInstance('unlisted', 0), lineOf('first'));
  const following = follow('unlisted');
  await expect.poll(following.texts).toEqual(['first']);
  rmSync(layout.service('unlisted'), { recursive: true });
  appendFileSync(layout.service('unlisted'), '');
  await expect(following.ended).rejects.toThrow('ENOTDIR');
});

test('an instance that starts later is followed from its first line, also where its log was rotated by then', async () => {
  appendFileSync(makeInstance('later', 0), lineOf('first'));
  const following = follow('later');
  await expect.poll(following.texts).toEqual(['first']);
  // Appears with all of its files at once, as it does for a reader that looks seldom.
  const log = makeInstance('made', 1);
  appendFileSync(`${log}.2`, lineOf('second'));
  appendFileSync(`${log}.1`, lineOf('third'));
  appendFileSync(log, lineOf('fourth'));
  renameSync(
    layout.instance({ serviceId: 'made', generation: 1, n: 1 }),
    layout.instance({ serviceId: 'later', generation: 1, n: 1 }),
  );
  await expect.poll(following.texts).toEqual(['first', 'second', 'third', 'fourth']);
  following.leave();
  await following.ended;
});
