import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Route } from '#platform/http/route.ts';
import { useApp, type Answer } from '#test/harness/app.ts';
import { exampleOf, typeOf } from '../answers.ts';
import type { Example } from '../examples.ts';
import { digestOf, rowsWith } from '../fuzz/digest.ts';
import type { Schema } from '../fuzz/values.ts';
import { makeWorld, type World } from '../world.ts';

const app = useApp();
const routes = allRoutes();
const named = routes.map((route) => [`${route.id}: ${route.method} ${route.path}`, route] as const);

let own: World;
let other: World;
let digest: () => Promise<string>;
beforeAll(async () => {
  [own, other] = [await makeWorld(app), await makeWorld(app)];
  digest = await digestOf(app);
});

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const IDS = new RegExp(ID.source.slice(1, -1), 'g');

const TIMES = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** Returns an answer without ids and times, to compare answers to different ids. */
const said = ({ status, body }: Answer) => ({
  status,
  body: JSON.stringify(body ?? null)
    .replaceAll(IDS, '<id>')
    .replaceAll(TIMES, '<time>'),
});

/** Asks the same of the other organization's thing and of an id that never existed. Both answers must be equal, and nothing may change. */
async function asksForBoth(ask: (id: string) => Promise<Answer>, foreign: string, where: string): Promise<Answer> {
  const before = await digest();
  const [theirs, nobodys] = [await ask(foreign), await ask(newId())];
  expect(said(theirs), where).toEqual(said(nobodys));
  if (theirs.status >= 400) expect(await digest(), `${where} changed something`).toBe(before);
  return theirs;
}

/** Returns the paths of an operation, each with one id of the other organization. `pathWith` inserts another id in its place. */
function strangePaths(route: Route): { name: string; foreign: string; pathWith: (id: string) => string }[] {
  const [mine, theirs] = [own.pathOf(route).split('/'), other.pathOf(route).split('/')];
  return route.path
    .split('/')
    .flatMap((part, at) =>
      part.startsWith('{') && ID.test(mine[at]!) && mine[at] !== theirs[at]
        ? [{ name: part, foreign: theirs[at]!, pathWith: (id: string) => mine.with(at, id).join('/') }]
        : [],
    );
}

describe('an id of another organization is like one that never was', () => {
  test.each(named.filter(([, route]) => strangeNames(route).length > 0))('in the path: %s', async (_name, route) => {
    const example = exampleOf(own, route);
    for (const { name, foreign, pathWith } of strangePaths(route)) {
      const ask = (id: string) =>
        own.admin.call(route.method, pathWith(id) + (example.query ?? ''), example.body, typeOf(example));
      const answer = await asksForBoth(ask, foreign, name);
      // Existing clients send any organization here: the cluster's own decides.
      if (name === '{organizationId}' && route.target?.inAnyOrganization) continue;
      expect(answer.status, `${name}: ${JSON.stringify(answer.body)}`).toBe(404);
    }
  });

  test.each(named.filter(([, route]) => idsIn(route.query as Schema | undefined).length > 0))(
    'in the query: %s',
    async (_name, route) => {
      const example = exampleOf(own, route);
      for (const [key] of idsIn(route.query as Schema))
        for (const foreign of foreignFor(String(key))) {
          const ask = (id: string) => {
            const query = new URLSearchParams(example.query ?? '');
            query.set(String(key), id);
            const url = `${example.path ?? own.pathOf(route)}?${query}`;
            return own.admin.call(route.method, url, example.body, typeOf(example));
          };
          await asksForBoth(ask, foreign, String(key));
        }
    },
  );

  test.each(named.filter(([, route]) => idsIn(route.body as Schema | undefined).length > 0))(
    'in the body: %s',
    async (_name, route) => {
      for (const place of idsIn(route.body as Schema))
        for (const foreign of foreignFor(String(place.findLast((part) => part !== 0)))) {
          const ask = (id: string) => askWith(route, exampleOf(own, route), place, id);
          await asksForBoth(ask, foreign, place.join('.'));
        }
    },
  );
});

function askWith(route: Route, example: Example, place: Place, id: string): Promise<Answer> {
  const url = `${example.path ?? own.pathOf(route)}${example.query ?? ''}`;
  // Equal names would make the second request a conflict.
  const base = {
    ...(example.body as object),
    ...('name' in ((example.body ?? {}) as object) ? { name: newId() } : {}),
  };
  return own.admin.call(route.method, url, withValue(base, place, id));
}

const strangeNames = (route: Route) => route.path.match(/\{\w+Id\}/g) ?? [];

/** Path of a value: keys, and 0 for the first item of a list. */
type Place = (string | 0)[];

/** Returns the paths of ids in a schema. */
function idsIn(schema: Schema | undefined, at: Place = []): Place[] {
  if (!schema) return [];
  const variants = (schema.anyOf ?? []).flatMap((one) => idsIn(one, at));
  const properties = Object.entries(schema.properties ?? {}).flatMap(([key, one]) => idsIn(one, [...at, key]));
  return [
    ...(schema.format === 'uuid' || (schema.type === 'string' && /(_id|Id)$/.test(String(at.at(-1)))) ? [at] : []),
    ...variants,
    ...properties,
    ...(schema.items ? idsIn(schema.items, [...at, 0]) : []),
  ];
}

function withValue(value: any, [key, ...rest]: Place, id: string): any {
  if (key === undefined) return id;
  if (key === 0)
    return [withValue(Array.isArray(value) ? value[0] : undefined, rest, id), ...[value ?? []].flat().slice(1)];
  const base = value && typeof value === 'object' ? value : {};
  return { ...base, [key]: withValue(base[key], rest, id) };
}

/** Returns the ids of the other organization that a field of this name could mean. */
function foreignFor(field: string): string[] {
  const kinds: Record<string, string> = {
    organization: other.organizationId,
    project: other.projectId,
    environment: other.environmentId,
    cluster: other.clusterId,
    application: other.applicationId,
    service: other.applicationId,
    variable: other.projectVariableId,
  };
  const [match] = Object.entries(kinds).filter(([kind]) => field.toLowerCase().includes(kind));
  return match ? [match[1]] : [other.projectId, other.environmentId, other.applicationId, other.clusterId];
}

describe('what no schema names', () => {
  /** Returns columns of tables, which a handler that spreads a body would write. */
  const columns = (mark: string) => ({
    id: mark,
    organization_id: mark,
    environmentId: mark,
    created_by: mark,
    created_at: '2001-02-03T04:05:06Z',
    updated_at: '2001-02-03T04:05:06Z',
    secret_hash: mark,
    deleting: true,
    owner_id: mark,
    subject: mark,
  });

  test.each(named.filter(([, route]) => route.body && !route.bodyContentType))(
    'is stored nowhere: %s',
    async (_n, route) => {
      const mark = newId();
      const example = exampleOf(own, route);
      const schema = route.body as Schema;
      const more = Object.entries(columns(mark)).filter(([key]) => !(key in (schema.properties ?? {})));
      const url = `${example.path ?? own.pathOf(route)}${example.query ?? ''}`;
      const body = { ...Object.fromEntries(more), ...(example.body as object) };
      const answer = await own.admin.call(route.method, url, body);
      expect(answer.status, JSON.stringify(answer.body)).not.toBe(500);
      expect(JSON.stringify(answer.body)).not.toContain(mark);
      expect(await rowsWith(app, mark)).toEqual([]);
    },
  );
});
