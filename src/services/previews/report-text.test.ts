import { expect, test } from 'vitest';
import { STATES, type State } from '#deployments/index.ts';
import { commentOf, stateOf, type ReportedOutcome } from '#services/previews/report-text.ts';

const HEAD = 'a'.repeat(40);
const done = (outcome: ReportedOutcome['outcome'], changes: Partial<ReportedOutcome> = {}): ReportedOutcome => ({
  wanted: outcome === 'REMOVED' ? 'ABSENT' : 'PRESENT',
  status: 'ENDED',
  outcome,
  applied_commit: HEAD,
  looked_commit: HEAD,
  approved_commit: null,
  hasRun: false,
  ...changes,
});
const OUTCOMES = ['PREVIEWED', 'AWAITS_APPROVAL', 'NOT_AFFECTED', 'REFUSED', 'REMOVED'] as const;

/** States in which the services of an environment may run the head. */
const SUCCESS: State[] = ['DEPLOYED', 'RESTARTED', 'READY', 'STOPPED', 'CANCELED', 'CANCELING'];
const LEAVING: State[] = ['DELETED', 'DELETING', 'DELETE_QUEUED', 'WAITING_DELETING'];

test.each(STATES)('an environment that is %s is told as success only if its services run the head', (state) => {
  const told = (isCurrent: boolean) => stateOf(done('PREVIEWED'), HEAD, { state, isCurrent })!.state;
  const ofError = state.endsWith('_ERROR') ? 'failure' : 'pending';
  expect(told(true)).toBe(SUCCESS.includes(state) ? 'success' : LEAVING.includes(state) ? 'cancelled' : ofError);
  if (SUCCESS.includes(state)) expect(told(false)).toMatch(/^(failure|cancelled)$/);
});

test.each(OUTCOMES)('the outcome %s of an earlier head is not told of a later one', (outcome) => {
  const earlier = { wanted: 'PRESENT' as const, applied_commit: 'b'.repeat(40), looked_commit: 'b'.repeat(40) };
  const environment = { state: 'DEPLOYED', isCurrent: true } as const;
  for (const status of ['WAITING', 'RUNNING'] as const)
    expect(stateOf(done(outcome, { ...earlier, status }), HEAD, environment)).toMatchObject({ state: 'pending' });
  if (outcome !== 'REMOVED') expect(stateOf(done(outcome, earlier), HEAD, environment)).toBeUndefined();
});

test('a preview that is removed is a success only of a commit that it was seen running', () => {
  for (const hasRun of [true, false]) {
    const told = (of: ReportedOutcome, state?: State) => stateOf(of, HEAD, state && { state, isCurrent: true })!.state;
    const is = hasRun ? 'success' : 'cancelled';
    expect(told(done('REMOVED', { hasRun }))).toBe(is);
    for (const state of ['DELETING', 'DELETE_ERROR', 'DEPLOYED'] as const)
      expect(told(done('REMOVED', { hasRun }), state)).toBe(is);
    for (const outcome of [null, ...OUTCOMES])
      expect(told(done(outcome, { hasRun, wanted: 'ABSENT', status: 'WAITING' }), 'DEPLOYED')).toBe(is);
    expect(told(done('PREVIEWED', { hasRun }))).toBe(is);
    for (const state of LEAVING) expect(told(done('PREVIEWED', { hasRun }), state)).toBe(is);
  }
  expect(stateOf(done('REMOVED', { hasRun: true }), HEAD, undefined)!.sentence).toBe('Removed.');
  expect(stateOf(done('PREVIEWED'), HEAD, { state: 'STOPPED', isCurrent: true })!.state).toBe('success');
  expect(stateOf(done('REFUSED', { wanted: 'ABSENT' }), HEAD, undefined)!.state).toBe('failure');
});

test('names in a comment are no markup, mention or link, and turn no line around', () => {
  const hostile = '@octocat [a](https://evil.example) ~~x~~ \u202ecod\nnext';
  const links = [{ service: hostile, url: 'https://preview.example' }];
  const comment = commentOf({
    marker: '',
    commit: 'c',
    previews: [{ source: hostile, sentence: 'Is there.', notes: [], links }],
  });
  for (const active of ['@octocat', 'https://evil', 'evil.example', '~~x', '\u202e', '\nnext'])
    expect(comment).not.toContain(active);
  expect(comment).not.toMatch(/(?<!\\)[[\]]/);
  expect(comment).toContain('https://preview.example');
});
