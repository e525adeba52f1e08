import { beforeAll, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import type { Route } from '#platform/http/route.ts';
import { useApp, type Answer } from '#test/harness/app.ts';
import { exampleOf, typeOf } from '../answers.ts';
import { makeWorld, type World } from '../world.ts';

const faults: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'error' }, {}, undefined, (line) => {
  const { msg, err } = JSON.parse(line) as Record<string, any>;
  if (msg === 'request failed' && err?.type !== 'AbortError') faults.push(err?.stack);
});

let world: World;
beforeAll(async () => void (world = await makeWorld(app)));

const long = 'x'.repeat(12_000);
/** Values in the form of a request line that are tried with every parameter of every operation. */
const ALWAYS = ['', '-1', '1e999', 'NaN', '%00', '%zz'];
const VALUES = [
  ...ALWAYS,
  '0',
  '9007199254740993',
  '1000000000',
  '1.5',
  '%ed%a0%80',
  'Infinity',
  '-0',
  '0x10',
  '2147483648',
  '9223372036854775808',
  '1e-7',
  ' 1',
  'null',
  'undefined',
  'true',
  '0000-01-01T00:00:00Z',
  '275760-09-13T00:00:00.001Z',
  '%2B275760-09-13T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999%2B23:59',
  '2016-12-31T23:59:60Z',
  '2026-02-30',
  '8640000000000001',
  '-62135596801',
  '00000000-0000-0000-0000-000000000000',
  '%',
  '%ff',
  '%F0%9F%98',
  '%E2%80%AE',
  'a%0Db%0Ad',
  "'",
  '%5C',
  '%25',
  '_',
  '*',
  '(',
  '__proto__',
  'constructor',
  '%7B%7D',
  '%5B%5D',
  'e30',
  'MA==',
  'eyJhIjoxfQ',
  ',',
  'AAAA.AAAA',
  long,
];
/** Returns forms of a parameter besides `name=value`. */
const formsOf = (name: string) => [
  name,
  `${name}=1&${name}=2`,
  `${name}[]=1`,
  `${name}[a]=1`,
  `${name}[__proto__]=1`,
  Array.from({ length: 500 }, () => `${name}=`).join('&'),
];

const parametersOf = (route: Route): string[] =>
  Object.keys((route.query as { properties?: object } | undefined)?.properties ?? {});

/** Selects operations that start a program for each request, because they ask a repository: a few values are enough. */
const isSlow = (route: Route) => /commit|contributor|deploymentPlan|terraformExport/i.test(route.path);

/** Parameters that several operations share (lists, kinds of services): all values are tried with the first operation only. */
const seen = new Set<string>();

function queriesFor(route: Route, name: string): string[] {
  const key = `${name} ${JSON.stringify((route.query!.properties as Record<string, unknown>)[name])} ${route.method}`;
  const isFirst = !seen.has(key) && !isSlow(route);
  seen.add(key);
  const values = (isFirst ? VALUES : ALWAYS).map((value) => `${name}=${value}`);
  // A parameter by another name is ignored, so that deletions would delete.
  return isFirst && route.method === 'GET' ? [...values, ...formsOf(name)] : values;
}

/** Returns what is wrong with an answer, or undefined. */
function wrongWith(name: string, { status, body }: Answer): string | undefined {
  if (status >= 500 && status !== 502) return `answered ${status}: ${JSON.stringify(body)}`;
  if (status !== 400 || body.message === 'The request is malformed.') return undefined;
  const told = ((body.errors ?? []) as { field: string; message: string }[]).filter(
    ({ field }) => field === name || field.startsWith(`${name}[`),
  );
  const saysWhatIsRight = told.some(({ message }) => /must|is required|names no|takes|is none of/.test(message));
  return saysWhatIsRight || told.length === 0 ? undefined : `says not what would be right: ${JSON.stringify(body)}`;
}

const tried = allRoutes()
  .filter((route) => parametersOf(route).length > 0)
  .sort((one, other) => Number(one.method !== 'GET') - Number(other.method !== 'GET'));

test.each(tried.map((route) => [`${route.method} ${route.path}`, route] as const))(
  '%s never answers 500, whatever stands in its query',
  async (_name, route) => {
    const example = exampleOf(world, route);
    const headers = typeOf(example);
    const wrong: string[] = [];
    for (const name of parametersOf(route))
      for (const query of queriesFor(route, name)) {
        const base = (example.query ?? '?').split('&').filter((part) => !part.replace('?', '').startsWith(`${name}=`));
        const others = base.map((part) => part.replace('?', '')).filter(Boolean);
        const path = `${example.path ?? world.pathOf(route)}?${[...others, query].join('&')}`;
        const answer = await world.admin.call(route.method, path, example.body, headers);
        const problem = wrongWith(name, answer);
        if (problem) wrong.push(`${query.slice(0, 80)}: ${problem}`);
      }
    expect(faults.splice(0)).toEqual([]);
    expect(wrong).toEqual([]);
  },
  60_000,
);
