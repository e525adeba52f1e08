import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Route } from '#platform/http/route.ts';
import { ok, useApp, type Answer } from '#test/harness/app.ts';
import { EXAMPLE, makeExample } from '#test/harness/engine.ts';
import { exampleOf, undocumented } from './answers.ts';
import { digestOf } from './fuzz/digest.ts';
import { requestsFor, type Ids, type Sent } from './fuzz/requests.ts';
import { worldsForRemovals } from './removals.ts';
import { makeWorld, type World } from './world.ts';

/**
 * Number of random requests for each operation, made from its schemas. `FUZZ_RUNS=500` tries more with a seed of the clock, `FUZZ_SEED=…`
 * repeats a run, `FUZZ_LOG=info` logs more than errors. A counterexample is printed in its smallest form.
 */
const RUNS = Number(process.env.FUZZ_RUNS ?? 6);
const SEED = Number(process.env.FUZZ_SEED ?? (process.env.FUZZ_RUNS ? Date.now() % 2 ** 31 : 4));

/** Time limit of a request, in milliseconds. Requests that call other hosts end by time limits of their own. */
const LIMIT_MS = 10_000;
/** Number of refused requests per comparison of all tables. */
const LOOK_EVERY = 4;

const app = useApp({ QUARTERDECK_LOG_LEVEL: process.env.FUZZ_LOG ?? 'error' });
const routes = allRoutes();
/** Selects operations that remove parts of the world: they get others. */
const removes = (route: Route) =>
  route.method === 'DELETE' || /\/(uninstall|delete|transferOwnership|lock)$/.test(route.path);

let world: World;
let other: World;
let ids: Ids;
let digest: () => Promise<string>;
let shown: Awaited<ReturnType<typeof allThatIsShown>>;
/** Operations that answered with success, and with a refusal: a suite that is only refused tests nothing. */
const [succeeded, refused] = [new Set<string>(), new Set<string>()];
beforeAll(async () => {
  console.info(`fuzz: FUZZ_RUNS=${RUNS} FUZZ_SEED=${SEED}`);
  [world, other] = [await makeWorld(app), await makeWorld(app)];
  // Shared ids, such as those of templates, belong to neither.
  const own = idsOf(world);
  const foreign = idsOf(other).filter((id) => !own.includes(id));
  ids = { own, foreign, gone: [newId(), ...(await deletedIds())] };
  digest = await digestOf(app);
  shown = await allThatIsShown(other);
});

/** Slow operations, which start git or resolve names. Their repository also changes during the run. */
const SLOW = /commit|contributor|\/check[A-Z]|FromGitRepo/i;
/** Operations whose answers change by themselves: any event moves the stream's position, and an archive holds its time. */
const MOVES = /eventStream|terraformExport/;

/** Reads the answers of all reading operations as the administrator of a world. */
async function allThatIsShown(at: World): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const route of routes.filter((one) => one.method === 'GET' && !SLOW.test(one.path) && !MOVES.test(one.path))) {
    const example = exampleOf(at, route);
    const { body } = await at.admin.get((example.path ?? at.pathOf(route)) + (example.query ?? ''));
    const { request_id: _differs, ...shown } = body ?? {};
    answers[route.id] = withoutChecks(typeof body === 'object' && !Array.isArray(body) ? shown : body);
  }
  return answers;
}

/** Fields that every read of a custom domain updates: not compared. */
const CHECKED = ['validation_checked_at', 'validation_error'];
const withoutChecks = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null, (key, part: unknown) => (CHECKED.includes(key) ? undefined : part)));

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const idsOf = (at: World): string[] => [
  ...new Set(routes.flatMap((route) => at.pathOf(route).match(UUID) ?? []).concat(at.spareClusterId)),
];

async function deletedIds(): Promise<string[]> {
  const { project, environment, application } = await makeExample(world.admin);
  ok(await world.admin.delete(`/project/${project.id}`), 204);
  return [project.id, environment.id, application.id];
}

/** Words from the inside of the program, which no answer may contain. */
const INSIDE = /\.ts:\d|node_modules|violates |invalid input syntax|\bat \S+ \(|pg_|relation "/;

/** Returns what is wrong with an answer, or undefined. */
function wrongWith(route: Route, sent: Sent, answer: Answer): string | undefined {
  const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  if (answer.status === 500) return `answered 500: ${text}`;
  // A query or path that is no valid URL never reaches the operation.
  const unrouted = answer.status === 400 && answer.body?.message === 'The request is malformed.';
  const unlike = unrouted ? undefined : undocumented(route, answer);
  if (unlike) return unlike;
  if (answer.status === 400 && /exist/i.test(answer.body.message.replaceAll(/".*"/g, '')))
    return `a 400 says "exist" (docs/contributing/rules.md 6): ${text}`;
  if (answer.status >= 400 && INSIDE.test(answer.body.message)) return `tells of the inside: ${text}`;
  const asked = `${sent.url} ${sent.body} ${JSON.stringify(sent.headers)}`;
  const leaked = ids.foreign.find((id) => text.includes(id) && !asked.includes(id));
  return leaked && `names ${leaked} of another organization: ${text}`;
}

/** Returns the digest once it is stable: an earlier request may still have had something to write. */
async function quiet(): Promise<string> {
  for (let last = await digest(); ;) {
    const again = await digest();
    if (again === last) return again;
    last = again;
  }
}

/** Returns the tables that differ. */
const changed = (before: string, after: string): string[] => {
  const was = new Set((JSON.parse(before) as object[]).map((table) => JSON.stringify(table)));
  return (JSON.parse(after) as object[]).map((table) => JSON.stringify(table)).filter((table) => !was.has(table));
};

async function timed<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not answered within ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function fuzz(route: Route, at: World): Promise<void> {
  let tried = 0;
  const property = fc.asyncProperty(requestsFor(route, at, ids, EXAMPLE), async (sent) => {
    const looks = tried++ % LOOK_EVERY === 0;
    const before = looks ? await quiet() : '';
    const headers = sent.body === undefined ? sent.headers : { 'content-type': 'application/json', ...sent.headers };
    const answer = await timed(at.admin.call(route.method, sent.url, sent.body, headers));
    expect(wrongWith(route, sent, answer)).toBeUndefined();
    (answer.status < 400 ? succeeded : refused).add(route.id);
    if (looks && answer.status >= 400)
      expect(
        changed(before, await digest()),
        `a request that was refused with ${answer.status} changed something`,
      ).toEqual([]);
  });
  await fc.assert(property, {
    seed: SEED,
    numRuns: Math.ceil(SLOW.test(route.path) ? RUNS / 4 : RUNS),
    interruptAfterTimeLimit: 100_000,
  });
}

const by = (wanted: (route: Route) => boolean) =>
  routes.filter(wanted).map((route) => [`${route.id}: ${route.method} ${route.path}`, route] as const);

describe('whatever is asked, the answer is one of the document, in time, and a refusal changes nothing', () => {
  test.each(by((route) => !removes(route)))('%s', (_name, route) => fuzz(route, world), 120_000);
  const worldFor = worldsForRemovals(app);
  test.each(by(removes))('%s', async (_name, route) => fuzz(route, await worldFor(route)), 120_000);
});

test('most operations were tried with success, and all that name something with refusal', () => {
  const never = (seen: Set<string>) => routes.filter((route) => !seen.has(route.id));
  const possible = never(succeeded).filter((route) => exampleOf(world, route).refused === undefined);
  // Random edits do not always allow what comes after them.
  expect(possible.length, possible.map((route) => route.id).join(' ')).toBeLessThan(routes.length / 10);
  expect(never(refused).filter((route) => route.path.includes('{'))).toEqual([]);
});

test('what another organization is shown is the same as before', async () => {
  const now = await allThatIsShown(other);
  const differ = Object.keys(shown).filter((id) => JSON.stringify(now[id]) !== JSON.stringify(shown[id]));
  expect(differ.map((id) => ({ id, before: shown[id], after: now[id] }))).toEqual([]);
});
