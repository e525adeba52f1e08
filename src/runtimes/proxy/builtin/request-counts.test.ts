import { expect, test } from 'vitest';
import { addRequests } from '#runtimes/proxy/builtin/request-counts.ts';
import { countRequest } from '#runtimes/proxy/requests.ts';
import { emptyTally, type Tally } from '#runtimes/tools/tally.ts';

/** Counts of a process that has answered so many requests to a service. */
function processOf(run: string, requests: number, serviceId = 'shop') {
  const tally = emptyTally();
  for (let n = 0; n < requests; n++) countRequest(tally, 200, 1);
  return { run, services: [[serviceId, tally]] as [string, Tally][] };
}

const okOf = ({ tallies }: ReturnType<typeof addRequests>) => tallies.get('shop')?.statuses[1];

test('a process that gave no answer once is counted on from where it was', () => {
  const first = addRequests(null, [processOf('a', 5)]);
  const silent = addRequests(first.position, []);
  expect(okOf(silent)).toBeUndefined();
  expect(okOf(addRequests(silent.position, [processOf('a', 7)]))).toBe(2);
});

test('what several processes have counted since then is added up', () => {
  const first = addRequests(null, [processOf('a', 5)]);
  expect(okOf(addRequests(first.position, [processOf('a', 6), processOf('b', 3)]))).toBe(4);
});

test('a service whose routes were removed and set again is counted from zero', () => {
  const first = addRequests(null, [processOf('a', 5)]);
  expect(okOf(addRequests(first.position, [processOf('a', 2)]))).toBe(2);
});

test('a snapshot forgets processes that ended long ago', () => {
  let { position } = addRequests(null, [processOf('0', 1)]);
  for (let n = 1; n < 20; n++) ({ position } = addRequests(position, [processOf(`run ${n}`, 1)]));
  expect(Object.keys(position)).toEqual(['run 16', 'run 17', 'run 18', 'run 19']);
});
