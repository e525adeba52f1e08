import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { isOwnerGone, OWNED_SECONDS, ownMark } from '#runtimes/tools/owner.ts';

const now = new Date();
const old = new Date(Date.now() - (OWNED_SECONDS + 60) * 1000);

test('a process that runs has not gone, however old its thing is', () => {
  expect([now, old].map((at) => isOwnerGone(ownMark(), at))).toEqual([false, false]);
});

test('a process that has ended is gone, and so is one whose number another process has now', async () => {
  const code = `import { ownMark } from '${new URL('./owner.ts', import.meta.url).href}'; console.log(ownMark());`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  let mark = '';
  child.stdout.on('data', (part) => (mark += String(part)));
  await once(child, 'close');
  expect(isOwnerGone(mark.trim(), now)).toBe(true);
  const [, ...rest] = ownMark().split('.').toReversed();
  expect(isOwnerGone(['1', ...rest].toReversed().join('.'), now)).toBe(true);
});

test('a process of another machine is gone once its thing is older than it may be', () => {
  const mark = 'another-machine.1.2.3';
  expect([now, old].map((at) => isOwnerGone(mark, at))).toEqual([false, true]);
});
