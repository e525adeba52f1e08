import { beforeAll, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Call, Route } from '#platform/http/route.ts';
import { useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { callExample, exampleOf } from './answers.ts';
import { worldsForRemovals } from './removals.ts';
import { makeWorld, type World } from './world.ts';

/** Words with which a parameter says that it changes nothing. */
const TELLS = /\bno effect\b/;

/** Operations whose work ends before it looks at their parameters here, each with the reason. */
const NOT_REACHED: Record<string, string> = {
  getContainerVersions: 'The registry of the example does not answer.',
  getHelmCharts: 'The repository of the example does not answer.',
  listPlatformTemplates: 'There are no templates to choose among.',
  resolvePlatformTemplateComponentConfiguration: 'There are no templates to choose among.',
  receiveRegistryCall: 'The registry of the example has no webhook.',
};

/** Parameters that the work of each operation has looked at, as `operation parameter`. */
const lookedAt = new Set<string>();

/** Returns a query that notes which of its parameters are looked at. */
const noting = (id: string, query: object): object =>
  new Proxy(query, {
    get: (of, key) => {
      if (typeof key === 'string') lookedAt.add(`${id} ${key}`);
      return Reflect.get(of, key);
    },
    has: (of, key) => {
      lookedAt.add(`${id} ${String(key)}`);
      return Reflect.has(of, key);
    },
  });

/** Lets the work of an operation have such a query. */
function watched(route: Route): Route {
  const { id, handler, before, settle } = route;
  const noted = (call: Call): Call => {
    const query = noting(id, call.query) as Call['query'];
    return new Proxy(call, { get: (of, key) => (key === 'query' ? query : Reflect.get(of, key)) });
  };
  return {
    ...route,
    handler: (call) => handler(noted(call)),
    ...(before ? { before: { ...before, run: (call: Call) => before.run(noted(call)) } } : {}),
    ...(settle
      ? { settle: (call: Call, answer: unknown, seconds: number) => settle(noted(call), answer, seconds) }
      : {}),
  };
}

const engine: { current?: ReturnType<typeof useEngine> } = {};
const app = useApp({}, { runtimeOf: async () => engine.current!.runtime, wrap: watched });
engine.current = useEngine(app);
const idle = useApp({}, { wrap: watched });

interface Schema {
  description?: string;
  type?: string;
  format?: string;
  enum?: unknown[];
  minimum?: number;
  items?: Schema;
  anyOf?: Schema[];
  pattern?: string;
}

/** Returns a value that a parameter takes. */
function valueOf(schema: Schema): string {
  const { type, format, enum: values, minimum = 1 } = schema;
  if (schema.anyOf) return valueOf(schema.anyOf[0]!);
  if (values) return String(values[0]);
  if (type === 'array') return valueOf(schema.items!);
  // A log that is followed has no end.
  if (type === 'boolean') return 'false';
  if (type === 'integer' || type === 'number') return String(minimum);
  if (format === 'date-time') return '2026-01-01T00:00:00Z';
  return format === 'uuid' ? newId() : '1';
}

const parametersOf = ({ query }: Route): [string, Schema][] =>
  Object.entries((query as { properties?: Record<string, Schema> } | undefined)?.properties ?? {});

const removes = (route: Route) =>
  route.method === 'DELETE' || /\/(uninstall|delete|lock|cancelDeployment)$/.test(route.path);

let world: World;
beforeAll(async () => void (world = await makeWorld(app, 15)));

test('no parameter of a query is accepted and ignored', { timeout: 600_000 }, async () => {
  const worldFor = worldsForRemovals(idle);
  const ignored: string[] = [];
  for (const route of allRoutes())
    for (const [name, schema] of parametersOf(route)) {
      if (TELLS.test(schema.description ?? '') || route.id in NOT_REACHED) continue;
      const at = removes(route) ? await worldFor(route) : world;
      const example = exampleOf(at, route);
      const query = new URLSearchParams(example.query);
      if (!query.has(name)) query.set(name, valueOf(schema));
      const answer = await callExample(at.admin, at, route, { ...example, query: `?${query}` });
      const of = `${route.id} ${name}`;
      if (!lookedAt.has(of)) ignored.push(`${of} (${answer.status})`);
    }
  expect(ignored).toEqual([]);
});

test('each exception is one of an operation', () => {
  const ids = new Set(allRoutes().map(({ id }) => id));
  expect(Object.keys(NOT_REACHED).filter((id) => !ids.has(id))).toEqual([]);
});
