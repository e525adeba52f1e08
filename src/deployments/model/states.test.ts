import { describe, expect, test } from 'vitest';
import {
  ACTIONS,
  detailsOf,
  isFinal,
  movesOf,
  next,
  phaseOf,
  PHASES,
  stateOf,
  STATES,
  TRANSITIONS,
  type Trigger,
} from '#deployments/model/states.ts';

const TRIGGERS = Object.keys(TRANSITIONS) as Trigger[];

describe.each(ACTIONS)('the states of a service in a deployment that does %s', (action) => {
  test('are all of the specification, and each names one phase', () => {
    const names = PHASES.map((phase) => stateOf(action, phase));
    for (const name of names) expect(STATES).toContain(name);
    expect(new Set(names).size).toBe(PHASES.length);
    for (const phase of PHASES) expect(phaseOf(action, stateOf(action, phase))).toBe(phase);
  });

  test('that are final are left by no trigger', () => {
    for (const phase of PHASES.filter((candidate) => isFinal(action, stateOf(action, candidate))))
      for (const trigger of TRIGGERS) expect(next(phase, trigger), `${phase} on ${trigger}`).toBeUndefined();
  });

  test('that are not final can all be cancelled, and reach an end from there', () => {
    for (const phase of PHASES.filter((candidate) => !isFinal(action, stateOf(action, candidate)))) {
      expect(next(phase, 'cancelled')).toBe('canceled');
      let at = phase;
      for (let moves = 0; !isFinal(action, stateOf(action, at)); moves++) {
        expect(moves, `${phase} never ends`).toBeLessThan(PHASES.length);
        at = (['succeed', 'apply', 'start'] as const)
          .map((trigger) => next(at, trigger))
          .find((found) => found !== undefined)!;
      }
    }
  });

  test('are moved by exactly the transitions of the table', () => {
    for (const trigger of TRIGGERS) {
      const expected = PHASES.filter((phase) => next(phase, trigger)).map((phase) => ({
        from: stateOf(action, phase),
        to: stateOf(action, next(phase, trigger)!),
      }));
      expect(movesOf(action, trigger).sort((a, b) => (a.from < b.from ? -1 : 1))).toEqual(
        expected.sort((a, b) => (a.from < b.from ? -1 : 1)),
      );
    }
  });

  test('show an action and a status of the reference', () => {
    for (const phase of PHASES) {
      const details = detailsOf(action, stateOf(action, phase), 'NONE');
      expect(['DEPLOY', 'STOP', 'RESTART', 'DELETE']).toContain(details.action);
      expect(['QUEUED', 'ONGOING', 'EXECUTING', 'SUCCESS', 'ERROR', 'CANCELING', 'CANCELED']).toContain(details.status);
    }
  });
});

test('a failed build is told apart from a failed deployment', () => {
  expect(stateOf('DEPLOY', next('building', 'fail')!)).toBe('BUILD_ERROR');
  expect(stateOf('DEPLOY', next('active', 'fail')!)).toBe('DEPLOYMENT_ERROR');
});

test('work that ends while it is being cancelled shows its real end', () => {
  expect(next('canceling', 'succeed')).toBe('succeeded');
  expect(next('canceling', 'fail')).toBe('failed');
});
