import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Route } from '#platform/http/route.ts';
import { useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { callExample, exampleOf, typeOf, undocumented } from './answers.ts';
import { EXAMPLES } from './examples.ts';
import { worldsForRemovals } from './removals.ts';
import { makeWorld, type World } from './world.ts';

const WAIT_SECONDS = 15;

const engine: { current?: ReturnType<typeof useEngine> } = {};
const app = useApp({}, { runtimeOf: async () => engine.current!.runtime });
engine.current = useEngine(app);
const idle = useApp();

const routes = allRoutes();
/** Selects operations that remove parts of the world or need a waiting deployment: they have worlds of their own, where no worker runs. */
const alone = (route: Route) =>
  route.method === 'DELETE' || /\/(uninstall|delete|lock|cancelDeployment)$/.test(route.path);
const by = (wanted: (route: Route) => boolean) =>
  routes.filter(wanted).map((route) => [`${route.id}: ${route.method} ${route.path}`, route] as const);

let world: World;
beforeAll(async () => void (world = await makeWorld(app, WAIT_SECONDS)));

async function succeeds(route: Route, at: World): Promise<void> {
  const example = exampleOf(at, route);
  const answer = await callExample(at.admin, at, route, example);
  expect(answer.status, JSON.stringify(answer.body)).toBe(example.refused ?? route.answer.status);
  expect(undocumented(route, answer)).toBeUndefined();
}

test('every example is one of an operation', () => {
  const ids = new Set(routes.map((route) => route.id));
  expect(Object.keys(EXAMPLES).filter((id) => !ids.has(id))).toEqual([]);
});

describe('reading answers what is documented', () => {
  test.each(by((route) => route.method === 'GET'))('%s', (_name, route) => succeeds(route, world));
});

describe('writing answers what is documented', () => {
  test.each(by((route) => route.method !== 'GET' && !alone(route)))('%s', (_name, route) => succeeds(route, world));
});

describe('removing answers what is documented', () => {
  const worldFor = worldsForRemovals(idle);
  test.each(by(alone))('%s', async (_name, route) => succeeds(route, await worldFor(route)));
});

/** Operations that tell callers without a signature nothing: to them there is nothing at the path. */
const SILENT = ['receiveGitPush', 'receiveRegistryCall'];

describe('a wrong request', () => {
  test.each(by((route) => route.path.includes('Id}')))('for what is not there: %s', async (_name, route) => {
    const url = route.path.replaceAll(/\{\w+\}/g, () => newId());
    const example = exampleOf(world, route);
    const answer = await world.admin.call(route.method, url + (example.query ?? ''), example.body, typeOf(example));
    expect(answer.status, JSON.stringify(answer.body)).toBe(404);
    expect(undocumented(route, answer)).toBeUndefined();
  });

  test.each(by((route) => Boolean(route.body)))('with a body that is not wanted: %s', async (_name, route) => {
    const caller = world.admin;
    const cases: [number[], unknown, Record<string, string>][] = [
      [[400], '[1]', {}],
      [(route.bodyContentType ?? 'application/json') === 'application/json' ? [400] : [415], '{"half', {}],
      [[413], JSON.stringify({ a: 'x'.repeat(1100_000) }), {}],
      [[415], 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
    ];
    for (const [statuses, body, headers] of cases) {
      const answer = await caller.call(route.method, world.pathOf(route), body, headers);
      const allowed = [
        ...statuses,
        ...(route.bodyContentType ? [415] : []),
        ...(SILENT.includes(route.id) ? [404] : []),
      ];
      expect(allowed, JSON.stringify(answer.body)).toContain(answer.status);
      expect(undocumented(route, answer)).toBeUndefined();
    }
  });
});
