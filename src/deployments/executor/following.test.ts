import { describe, expect, test } from 'vitest';
import { followOutside } from '#deployments/executor/following.ts';

/** Follows work that is aborted before it is followed; returns what came of it, and what the work was told. */
async function followAborted(mayGoOn: boolean) {
  const told: boolean[] = [];
  const begin = async ({ signal }: { signal: AbortSignal }) => {
    told.push(signal.aborted);
    signal.throwIfAborted();
  };
  const signal = AbortSignal.abort(new Error('cancelled'));
  const end = await followOutside(signal, { begin, log: () => undefined }, async () => mayGoOn).catch(String);
  return { end, told };
}

describe('work outside whose signal was aborted between its beginning and its following', () => {
  test('is ended, so that a cancelled rollout is taken back', async () => {
    expect(await followAborted(false)).toEqual({ end: 'Error: cancelled', told: [true] });
  });

  test('is left to a successor where it may go on', async () => {
    expect(await followAborted(true)).toEqual({ end: expect.stringContaining('left to go on'), told: [] });
  });
});
