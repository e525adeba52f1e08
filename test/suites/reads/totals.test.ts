import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { EXAMPLES } from '#test/suites/examples.ts';
import { callExample, exampleOf, pageSizeOf } from '#test/suites/answers.ts';
import { makeWorld, type World } from '#test/suites/world.ts';

const app = useApp();
let world: World;
beforeAll(async () => void (world = await makeWorld(app)), 60_000);

const paged = allRoutes().filter(
  (route) => route.method === 'GET' && pageSizeOf(route) !== undefined && !EXAMPLES[route.id]?.({} as World)?.refused,
);

describe('the total of a list is the same on a page that is full, on one that is not, and beyond the end', () => {
  test('there are such lists', () => expect(paged.length).toBeGreaterThan(100));

  test.each(paged.map((route) => [route.id, route] as const))('%s', async (_id, route) => {
    const example = exampleOf(world, route);
    const ask = async (page: number, size: number) => {
      const query = `${example.query ? `${example.query}&` : '?'}page=${page}&${pageSizeOf(route)}=${size}`;
      return ok(await callExample(world.admin, world, route, { ...example, query }), 200);
    };
    const [all, one, beyond] = [await ask(1, 100), await ask(1, 1), await ask(1_000_000, 1)];
    expect(all.pagination.total_count).toBeLessThan(100);
    expect(one.results.length).toBeLessThanOrEqual(1);
    expect(beyond.results).toEqual([]);
    expect(one.pagination.total_count).toBe(all.pagination.total_count);
    expect(beyond.pagination.total_count).toBe(all.pagination.total_count);
  });
});
