import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { tellingNoSpace } from '#runtimes/host/no-space.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

const told = (error: Error) =>
  tellingNoSpace(tmpdir(), () => Promise.reject(error)).catch((failure: unknown) => failure);
const LINE = { at: '2026-01-01T00:00:00.000Z', instance: 'web', generation: 1, stream: 'stderr' as const, text: 'write: ENOSPC' }; // prettier-ignore

test('an instance that finds its storage full does not have the machine blamed', async () => {
  const error = new RuntimeError('not_ready', 'Instance 1 did not get ready.\nENOSPC: no space left on device');
  expect(await told(error)).toBe(error);
});

test('an error of the machine is told with what to do, and keeps its lines if it has any', async () => {
  const bare = await told(new RuntimeError('build_failed', 'RUN: No space left on device'));
  expect(bare).toMatchObject({ code: 'build_failed', message: expect.stringContaining('Free some') });
  expect((bare as RuntimeError).lastLines).toBeUndefined();
  expect(await told(new RuntimeError('failed', 'ENOSPC').withLines([LINE]))).toMatchObject({ lastLines: [LINE] });
  expect(await told(Object.assign(new Error('mkdir'), { code: 'ENOSPC' }))).toMatchObject({ code: 'failed' });
});
