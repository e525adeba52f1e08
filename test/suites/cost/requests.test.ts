import { beforeAll, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import type { Route } from '#platform/http/route.ts';
import { useApp } from '#test/harness/app.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';
import { exampleOf } from '../answers.ts';
import { makeWorld, type World } from '../world.ts';
import { heavyBodies } from './bodies.ts';

const app = useApp();
const routes = allRoutes().filter((route) => route.body);
/** Share of operations, 1 in so many, that get what costs the parser most: it is the same for all. */
const PARSING_EVERY = 12;
let world: World;
beforeAll(async () => {
  world = await makeWorld(app);
});

/** Returns the bodies of an operation that block the event loop for too long, or are answered with 500. */
async function faultsOf(route: Route): Promise<string[]> {
  const example = exampleOf(world, route);
  const url = `${example.path ?? world.pathOf(route)}${example.query ?? ''}`;
  const headers = { 'content-type': route.bodyContentType ?? 'application/json' };
  const faults: string[] = [];
  const parsing = routes.indexOf(route) % PARSING_EVERY === 0;
  for (const { what, text } of heavyBodies(route, example.body, parsing)) {
    let status = 0;
    const send = async () => ({ status } = await world.admin.call(route.method, url, text, headers));
    const blocked = await leastBlockedBy(send);
    if (blocked > LONGEST_BLOCK_MS) faults.push(`${what}: ${Math.round(blocked)} ms (${status})`);
    if (status === 500) faults.push(`${what}: 500`);
  }
  return faults;
}

test.each(routes.map((route) => [`${route.id}: ${route.method} ${route.path}`, route] as const))(
  'no body holds up anybody for more than 50 ms: %s',
  async (_name, route) => expect(await faultsOf(route)).toEqual([]),
  300_000,
);
