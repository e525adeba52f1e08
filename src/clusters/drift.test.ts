import { expect, test } from 'vitest';
import { compareWorld, type Found, type KnownService } from '#clusters/drift.ts';

const GENERATION = 2 ** 32 + 5;

const service = (changes: Partial<KnownService> = {}): KnownService => ({
  id: 's',
  name: 'name',
  place: 'o / p / e',
  runtime: 'host',
  here: true,
  wanted: 'running',
  generation: GENERATION,
  scaledToNothing: false,
  underWay: false,
  changes: null,
  ...changes,
});

const found = (changes: Partial<Found> = {}, generation = GENERATION): Found => ({
  identity: { installation: 'i', organizationId: 'o', projectId: 'p', environmentId: 'e', serviceId: 's', generation },
  displayName: 'name',
  state: 'running',
  runtime: 'host',
  clusterId: null,
  ...changes,
});

const kinds = (known: KnownService[], world: Found[]) =>
  compareWorld(known, world).differences.map(({ difference }) => difference);

test.each<[string, KnownService[], Found[], string[]]>([
  ['runs as it should', [service()], [found()], []],
  ['is stopped as it should be', [service({ wanted: 'stopped' })], [found({ state: 'stopped' })], []],
  ['is stopped as it should be, and gone', [service({ wanted: 'stopped' })], [], []],
  ['was never deployed', [service({ wanted: 'absent', generation: null })], [], []],
  ['is nowhere in the database', [], [found()], ['unknown']],
  ['is nowhere in the database and stopped', [], [found({ state: 'stopped' })], ['unknown']],
  ['was first deployed later', [service({ wanted: 'absent', generation: null })], [found()], ['unknown']],
  ['was uninstalled according to the database', [service({ wanted: 'absent' })], [found()], ['unknown']],
  ['should run and is gone', [service()], [], ['missing']],
  ['should run and is stopped', [service()], [found({ state: 'stopped' })], ['missing']],
  ['should run without an instance', [service({ scaledToNothing: true })], [], []],
  ['should be stopped and runs', [service({ wanted: 'stopped' })], [found()], ['running']],
  ['was deployed again since', [service()], [found({}, GENERATION + 1)], ['newer']],
  ['was deployed again under another epoch', [service()], [found({}, 2 * 2 ** 32 + 1)], ['newer']],
  ['was deployed again since and stopped', [service()], [found({ state: 'stopped' }, GENERATION + 1)], ['newer']],
  ['was last deployed elsewhere', [service()], [found({}, GENERATION - 1)], ['older']],
  [
    'runs with fields that somebody changed',
    [service({ changes: 'spec.replicas was changed.' })],
    [found()],
    ['changed'],
  ],
  ['belongs to another machine', [service({ here: false })], [], []],
  ['is being deployed', [service({ underWay: true })], [found({}, GENERATION + 1)], []],
  ['is being deployed and is not there yet', [service({ underWay: true })], [], []],
])('a service that %s', (_what, known, world, expected) => {
  expect(kinds(known, world)).toEqual(expected);
});

test('what is alike is counted, and the highest epoch of the world told', () => {
  expect(compareWorld([service()], [found()])).toEqual({ differences: [], alike: 1, epoch: 1 });
  expect(compareWorld([], [found({}, 3 * 2 ** 32)])).toMatchObject({ alike: 0, epoch: 3 });
  expect(compareWorld([], [])).toEqual({ differences: [], alike: 0, epoch: 0 });
});
