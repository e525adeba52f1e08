import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { newContext, newIdentity, newTask } from '#runtimes/contract/fixture.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Launcher, Place } from '#runtimes/host/launch.ts';
import { TaskEnds } from '#runtimes/host/task-end.ts';
import { stateFile, type ShimState } from '#runtimes/tools/shim/state.ts';

const home = mkdtempSync(join(tmpdir(), 'task-end-'));
const directory = join(home, 'task');
afterEach(() => rmSync(home, { recursive: true, force: true }));

test('a command whose service is removed while its end is being recorded is lost, and its waiter gets no other error', async () => {
  mkdirSync(directory);
  const lastExit = { code: 1, signal: null, reason: 'exited', at: new Date().toISOString() };
  const state: ShimState = {
    format: 1,
    shim: { bootId: 'before this boot', pid: process.pid, startTime: '0' },
    process: null,
    state: 'stopped',
    restarts: 0,
    startedAt: lastExit.at,
    lastExit,
  };
  writeFileSync(stateFile(directory), JSON.stringify(state));
  const parts = {
    bootId: 'this boot',
    cgroups: {
      // The removal comes between the look at the state and the record.
      ranOutOfMemory: () => {
        rmSync(directory, { recursive: true });
        return false;
      },
    },
  } as unknown as HostParts;
  const spec = newTask(newIdentity('test'), 'image', []);
  const end = await new TaskEnds(parts, {} as Launcher).endOf({ directory, name: 'one' } as Place, spec, newContext());
  expect(end).toMatchObject({ reason: 'lost', exitCode: null, output: null });
});
