import { beforeAll, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Route } from '#platform/http/route.ts';
import { KINDS } from '#services/mount.ts';
import { useApp } from '#test/harness/app.ts';
import { exampleBody, useEngine } from '#test/harness/engine.ts';
import { makeRandom, seedOf, type Random } from '#test/harness/random.ts';
import { exampleOf, undocumented } from '../answers.ts';
import { makeWorld, type World } from '../world.ts';

/** Number of concurrent reads. */
const READERS = 5;
/** Time in milliseconds in which environments come and go; after it the rest of the world is deleted. */
const CHURN_MS = 8_000;
/** Number of environments that come and go at a time. */
const CHURNS = 2;
const DEPLOY_SECONDS = 10;

/** Operations whose answer is sent in parts. Its connection is cut if what it tells is removed meanwhile: no half of it must look whole. */
const IN_PARTS = ['listEnvironmentLog', 'listEnvironmentLogs'];
const REMOVED = 'The log was removed while it was read.';

const faults: string[] = [];
const engine: { current?: ReturnType<typeof useEngine> } = {};
const app = useApp(
  { QUARTERDECK_LOG_LEVEL: 'error' },
  { runtimeOf: async () => engine.current!.runtime },
  undefined,
  (line) => {
    const { msg, err, path } = JSON.parse(line) as Record<string, any>;
    // The harness closes a stream after its first event.
    if (msg === 'request failed' && err?.type !== 'AbortError' && err?.message !== REMOVED)
      faults.push(`${path}: ${err?.stack}`);
  },
);
engine.current = useEngine(app);
const reads = allRoutes().filter((route) => route.method === 'GET');

let world: World;
beforeAll(async () => void (world = await makeWorld(app, DEPLOY_SECONDS)));

/** Ids that replace those of the world in paths, by parameter: of things that come and go. */
type Ids = Record<string, string>;

/** Accepts statuses that are no fault of a read: refused deletions, and failed calls to Git or the DNS. */
const isFine = (route: Route, status: number): boolean =>
  [200, 401, 404, 410].includes(status) || (route.errors ?? []).includes(status as 400) || status === 400;

function pathFor(route: Route, ids: Ids): string {
  const example = exampleOf(world, route);
  const own = { ...ids, serviceId: ids['applicationId'] ?? '' };
  const replaced = route.path.replaceAll(/\{(\w+)\}/g, (part, name: string) => own[name as keyof typeof own] || part);
  return (example.path ?? world.pathOf({ method: route.method, path: replaced })) + (example.query ?? '');
}

/** Reads everything in an order of its own until it is stopped; returns what was wrong. */
async function readOn(
  random: Random,
  ids: () => Ids,
  seen: Map<number, number>,
  signal: AbortSignal,
): Promise<string[]> {
  const wrong: string[] = [];
  while (!signal.aborted) {
    const route = random.pick(reads);
    const path = pathFor(route, random.below(4) === 0 ? {} : ids());
    const answer = await world.admin.get(path).catch((error: Error) => error);
    if (answer instanceof Error) {
      if (!IN_PARTS.includes(route.id)) wrong.push(`${route.id}: GET ${path}: ${answer.message}`);
      continue;
    }
    seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
    const unlike = isFine(route, answer.status)
      ? undocumented(route, answer)
      : `${answer.status} ${JSON.stringify(answer.body)}`;
    // A path to a deleted thing is refused before its target is known.
    if (unlike && answer.status !== 401) wrong.push(`${route.id}: GET ${path}: ${unlike}`);
  }
  return wrong;
}

/** Creates, deploys, changes and deletes an environment with a service of each kind, over and over. */
async function comeAndGo(ids: Ids, until: number): Promise<number> {
  const { admin } = world;
  let rounds = 0;
  for (; Date.now() < until; rounds++) {
    const environment = await admin.post(`/project/${world.projectId}/environment`, { name: newId() });
    ids['environmentId'] = environment.body.id;
    const url = `/environment/${environment.body.id}`;
    for (const kind of KINDS) {
      const body = kind.kind === 'APPLICATION' ? exampleBody() : world.bodies[kind.kind];
      if (!body || kind.kind === 'DATABASE') continue;
      const made = await admin.post(`${url}/${kind.path}`, { ...body, name: kind.path });
      if (made.status === 201) ids[`${kind.path}Id`] = made.body.id;
      if (kind.kind === 'APPLICATION') await admin.post(`/application/${made.body.id}/deploy?wait=${DEPLOY_SECONDS}`);
    }
    await admin.post(`${url}/deploy?wait=2`);
    await admin.delete(`/application/${ids['applicationId']}`);
    await admin.delete(url);
    const end = Date.now() + 10_000;
    while ((await admin.get(url)).status === 200 && Date.now() < end) await admin.get(`${url}/statuses`);
  }
  return rounds;
}

/** Deletes everything that is left, the organization last. */
async function deleteAll(): Promise<void> {
  const { admin } = world;
  const removals = allRoutes().filter(
    (route) => route.method === 'DELETE' && !route.path.endsWith('/{organizationId}'),
  );
  const depth = (route: Route) => -route.path.split('/').length;
  for (const route of removals.sort((one, other) => depth(one) - depth(other)))
    await admin.call('DELETE', world.pathOf(route), exampleOf(world, route).body);
  const project = `/project/${world.projectId}`;
  const end = Date.now() + 10_000;
  while ((await admin.get(project)).status === 200 && Date.now() < end) await admin.delete(project);
  await admin.delete(`/organization/${world.organizationId}`);
}

test('every GET answers 200, 404 or 410 while its subject is created, deployed and deleted', async () => {
  const seed = seedOf();
  console.log(`SEED=${seed}`);
  const stop = new AbortController();
  const seen = new Map<number, number>();
  const coming: Ids[] = Array.from({ length: CHURNS }, () => ({}));
  const readers = Array.from({ length: READERS }, (_, at) => {
    const random = makeRandom(seed + at);
    return readOn(random, () => random.pick(coming), seen, stop.signal);
  });
  const until = Date.now() + CHURN_MS;
  const rounds = await Promise.all(coming.map((ids) => comeAndGo(ids, until)));
  await deleteAll();
  stop.abort();
  const wrong = (await Promise.all(readers)).flat();
  console.log(
    `${[...seen].map(([status, count]) => `${count} × ${status}`).join(', ')}; ${rounds.join(' + ')} environments`,
  );
  expect([...new Set(wrong)]).toEqual([]);
  expect(faults).toEqual([]);
  expect(seen.get(200)).toBeGreaterThan(100);
  expect(seen.get(404)).toBeGreaterThan(20);
  expect(Math.min(...rounds)).toBeGreaterThan(0);
}, 90_000);
