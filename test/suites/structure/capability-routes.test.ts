import { readdirSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import type { Route } from '#platform/http/route.ts';

/** File below src that defines a route, by operation id. */
const files = vi.hoisted(() => new Map<string, string>());

vi.mock('#platform/http/route.ts', async (original) => {
  const real = await original<typeof import('#platform/http/route.ts')>();
  const source = `${process.cwd()}/src/`;
  const defineRoute: typeof real.defineRoute = (definition) => {
    const frame = new Error('defined').stack!.split('\n').find((line) => line.includes(source)) ?? '';
    files.set(definition.id, frame.slice(frame.indexOf(source) + source.length).replace(/:.*/, ''));
    return real.defineRoute(definition);
  };
  return { ...real, defineRoute };
});

const { allRoutes } = await import('#app/routes.ts');
const { KINDS, READ_KINDS } = await import('#services/mount.ts');

const CAPABILITIES = 'services/capabilities';
const ENVIRONMENT = 'environment';
/** First segments of paths of services: those of the kinds, and those of services of any kind. */
const OF_SERVICES = [...[...KINDS, ...READ_KINDS].map(({ path }) => path), 'service', '{serviceType}'];

const routes = allRoutes();
const routesIn = (folder: string): Route[] =>
  routes.filter(({ id }) => files.get(id)!.startsWith(`${CAPABILITIES}/${folder}/`));

/** Lists the routes of a folder whose paths begin with one of the segments, with their right folder. */
const misplaced = (folder: string, segments: string[], right: string): string[] =>
  routesIn(folder)
    .filter(({ path }) => segments.includes(path.split('/')[1]!))
    .map(({ id, method, path }) => `${method} ${path} of ${files.get(id)}: belongs to ${CAPABILITIES}/${right}`);

test('a route below /environment is no capability of a service', () => {
  expect(routesIn('service').length).toBeGreaterThan(100);
  expect(misplaced('service', [ENVIRONMENT], 'environment')).toEqual([]);
});

test('a route below a kind of service is no capability of an environment', () => {
  expect(routesIn('environment').length).toBeGreaterThan(30);
  expect(misplaced('environment', OF_SERVICES, 'service')).toEqual([]);
});

test('a capability is that of services or of environments; only variables are of both, and of projects', () => {
  expect(readdirSync(`src/${CAPABILITIES}`).sort()).toEqual(['environment', 'service', 'variables']);
});

test('the file of every route is known', () => {
  expect(routes.filter(({ id }) => !files.get(id)?.endsWith('.ts')).map(({ id }) => id)).toEqual([]);
});
