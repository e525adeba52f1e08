import type { Route } from '#platform/http/route.ts';
import type { TestApp } from '#test/harness/app.ts';
import { makeWorld, type World } from './world.ts';

/** Operations on what holds the rest of a world: little is left of it afterwards. */
const WHOLE = /^\/(organization|project|environment|cluster|deploymentQueue)\/\{\w+\}(\/[A-Za-z/]+)?$/;

/**
 * Returns a function that finds a world for an operation that removes something. Those that remove a part of a world share one with others of
 * their method and depth, so that none takes away what another one names; those that remove the whole get a world of their own.
 */
export function worldsForRemovals(app: TestApp): (route: Route) => Promise<World> {
  const shared = new Map<string, Promise<World>>();
  return ({ method, path }) => {
    if (WHOLE.test(path)) return makeWorld(app);
    const key = `${method} ${path.split('{').length} ${path.split('/').length}`;
    if (!shared.has(key)) shared.set(key, makeWorld(app));
    return shared.get(key)!;
  };
}
