import { describe, expect, test } from 'vitest';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import { failureOf } from './failure.ts';
import { newChart } from './testing.ts';
import { NOTHING_SEEN, type FailedPod } from './watch.ts';

const spec = newChart(newIdentity('here'), 'chart', { timeoutSeconds: 40 });
const pod = (name: string, why: string, ...texts: string[]): FailedPod => ({
  pod: name,
  why,
  lines: texts.map((text) => ({ instance: name, at: null, text })) as unknown as FailedPod['lines'],
});
const web = pod('web-1', 'its checks do not pass');
const hook = pod('migrate-1', 'it ended with status 7', 'no table');
const say = (stderr: string, watched = NOTHING_SEEN, refusals = new Set<string>()) => {
  const { code, message } = failureOf(spec, stderr, { watched, refusals });
  return [code, message];
};
const PRE =
  'UPGRADE FAILED: an error occurred while rolling back the release. original upgrade error: pre-upgrade hooks failed: 1 error occurred:\n\t* job migrate failed: BackoffLimitExceeded\n\n: no StatefulSet with the name "store" found';

describe('the reason of a chart that failed', () => {
  test('is the hook that failed, also if a pod was in trouble before, and what helm cannot take back of nothing is left out', () => {
    const reason = [
      'failed',
      'The hook migrate-1 of the chart web 1.0.0 failed: it ended with status 7. Last lines of its log:\n  no table',
    ];
    expect(say(PRE, { failed: web, failedHook: hook })).toEqual(reason);
    expect(
      say(
        'Error: release web failed, and has been uninstalled due to atomic being set: failed pre-install: 1 error occurred',
        { failed: web, failedHook: hook },
      ),
    ).toEqual(reason);
  });

  test('is the pod that did not get ready, also if the pod of a hook failed before another one succeeded', () => {
    expect(
      say(
        'Error: UPGRADE FAILED: release web failed, and has been rolled back due to atomic being set: context deadline exceeded',
        { failed: web, failedHook: hook },
      ),
    ).toEqual([
      'not_ready',
      'web-1 of the chart web 1.0.0 was not ready within 40 s (timeout_sec): its checks do not pass. It wrote no log.',
    ]);
  });

  test('tells that the release before did not come back', () => {
    const stderr =
      'Error: UPGRADE FAILED: an error occurred while rolling back the release. original upgrade error: timed out waiting for the condition: no Service with the name "web" found';
    const [, message] = say(stderr, { failed: web, failedHook: null });
    expect(message).toContain('The release before was not brought back completely: UPGRADE FAILED: an error');
    expect(message).toMatch(/It wrote no log\.$/);
    const post = stderr.replace('timed out waiting for the condition', 'post-upgrade hooks failed: 1 error occurred');
    expect(say(post, { failed: null, failedHook: hook })[1]).toContain('was not brought back completely');
  });

  test('is a refusal of the border, or what helm says with a remedy, where nothing was seen', () => {
    expect(say(PRE, { failed: web, failedHook: hook }, new Set(['It is not the chart’s.']))).toEqual([
      'failed',
      'The chart web 1.0.0 was refused: It is not the chart’s.',
    ]);
    expect(say(PRE)).toEqual(['not_ready', expect.stringContaining('was not applied: UPGRADE FAILED')]);
    expect(say('WARNING: old\nError: resource mapping not found: no matches for kind "Thing" in version "v1"')).toEqual(
      [
        'failed',
        expect.stringMatching(/^The chart web 1\.0\.0 was not applied: resource mapping .* Install the operator/),
      ],
    );
  });
});
