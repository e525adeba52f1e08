import { beforeAll, describe, expect, test } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { newId } from '#kernel/ids.ts';
import type { Route } from '#platform/http/route.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';
import { secretOf } from '#test/harness/tokens.ts';
import { exampleOf, typeOf } from '../answers.ts';
import { rowsWith } from '../fuzz/digest.ts';
import { makeWorld, type World } from '../world.ts';

/** Concurrent requests: whatever their order, they keep the guarantees of sequential requests. */
const app = useApp();
const routes = allRoutes();
const named = (wanted: (route: Route) => boolean) =>
  routes.filter(wanted).map((route) => [`${route.id}: ${route.method} ${route.path}`, route] as const);

let world: World;
beforeAll(async () => void (world = await makeWorld(app)));

const urlOf = (route: Route): string => {
  const example = exampleOf(world, route);
  return `${example.path ?? world.pathOf(route)}${example.query ?? ''}`;
};
const statuses = (answers: Answer[]): number[] => answers.map(({ status }) => status).sort();

/** Operations that create things with a unique name or key (docs/contributing/rules.md 8, 32). */
const UNIQUE = [
  'createOrganization',
  'createProject',
  'createEnvironment',
  'createApplication',
  'createOrganizationApiToken',
  'createOrganizationPolicyApiToken',
  'createOrganizationCustomRole',
  'postInviteMember',
  'createProjectEnvironmentVariable',
  'createProjectSecret',
  'createEnvironmentEnvironmentVariable',
  'createEnvironmentSecret',
  'createApplicationEnvironmentVariable',
  'createApplicationSecret',
  'createVariable',
  'createApplicationCustomDomain',
  'cloneEnvironment',
  'cloneApplication',
];

/** Operations without credentials that may be called as often as one likes. */
const AGAIN = ['signIn', 'getSignInLink'];

describe('a name that can be had once', () => {
  test.each(named((route) => UNIQUE.includes(route.id)))(
    'goes to one of eight who ask at once: %s',
    async (_n, route) => {
      const { body } = exampleOf(world, route);
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => world.admin.call(route.method, urlOf(route), body)),
      );
      const [first, ...others] = statuses(answers);
      expect(first, JSON.stringify(answers[0]!.body)).toBe(route.answer.status);
      expect(others).toEqual(Array.from({ length: 7 }, () => 409));
    },
  );
});

describe('edits of one thing with the version that was read', () => {
  const editable = named(
    (route) =>
      route.method === 'PUT' &&
      Boolean(route.body) &&
      routes.some((other) => other.method === 'GET' && other.path === route.path),
  );

  test.each(editable)('one of six is taken, the others are told to read again: %s', async (_name, route) => {
    if (exampleOf(world, route).refused !== undefined) return;
    const { headers } = await world.admin.get(urlOf(route));
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        world.admin.call(route.method, urlOf(route), exampleOf(world, route).body, {
          'if-match': String(headers.etag),
        }),
      ),
    );
    const taken = answers.filter(({ status }) => status < 300);
    expect(
      answers.every(({ status }) => status < 300 || status === 412),
      JSON.stringify(answers[0]!.body),
    ).toBe(true);
    expect(taken.length).toBeGreaterThan(0);
    // Requests that changed nothing leave the version as it is.
    if (taken.length > 1) expect(new Set(taken.map(({ headers: { etag } }) => etag)).size).toBe(1);
  });
});

describe('an Idempotency-Key', () => {
  const project = (actor: Actor) => `/organization/${actor.organizationId}/project`;

  test('is of its caller alone: another organization gets its own answer for it', async () => {
    const [one, two] = [await app.organization(), await app.organization()];
    const headers = { 'idempotency-key': newId() };
    const body = { name: 'the same' };
    const [first, second] = [
      ok(await one.call('POST', project(one), body, headers), 201),
      ok(await two.call('POST', project(two), body, headers), 201),
    ];
    expect(second.id).not.toBe(first.id);
    expect(second.organization.id).toBe(two.organizationId);
    // The key does not reveal the other organization's answer under that organization's path either.
    expect((await two.call('POST', project(one), body, headers)).status).toBe(404);
    const reader = await one.withScope('READ');
    expect((await reader.call('POST', project(one), body, headers)).status).toBe(403);
  });

  test('is of one request: another body or path is 409, whatever comes first', async () => {
    const { admin } = world;
    const headers = { 'idempotency-key': newId() };
    const names = Array.from({ length: 6 }, () => `one of six ${newId()}`);
    const answers = await Promise.all(names.map((name) => admin.call('POST', project(admin), { name }, headers)));
    expect(statuses(answers)).toEqual([201, 409, 409, 409, 409, 409]);
    expect((await admin.call('POST', '/organization', { name: names[0] }, headers)).status).toBe(409);
  });

  test('sent by eight at once is one effect and one answer', async () => {
    const { admin } = world;
    const [headers, body] = [{ 'idempotency-key': newId() }, { name: `once ${newId()}` }];
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => admin.call('POST', project(admin), body, headers)),
    );
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.body.id}`)).size).toBe(1);
  });

  test.each(named((route) => route.method === 'POST'))('holds for %s', async (_name, route) => {
    const at = /\/(uninstall|delete|lock|transferOwnership)$/.test(route.path) ? await makeWorld(app) : world;
    const example = exampleOf(at, route);
    const url = `${example.path ?? at.pathOf(route)}${example.query ?? ''}`;
    const headers = { ...typeOf(example), 'idempotency-key': newId() };
    const [first, second] = [
      await at.admin.call('POST', url, example.body, headers),
      await at.admin.call('POST', url, example.body, headers),
    ];
    expect(first.status, JSON.stringify(first.body)).toBeLessThan(example.refused === 502 ? 503 : 500);
    // Anonymous callers have no keys of their own: what works once is gone by then.
    const isUsedUp = first.status < 400 && !AGAIN.includes(route.id);
    if (route.action === 'public') expect(second.status).toBe(isUsedUp ? 404 : first.status);
    else if (first.status < 400) expect([second.status, second.body]).toEqual([first.status, first.body]);
  });

  test('never keeps a token in clear: what is shown once is sealed', async () => {
    const { admin } = world;
    const body = { name: `sealed ${newId()}`, scope: 'READ' };
    const url = `/organization/${admin.organizationId}/apiToken`;
    const made = ok(await admin.call('POST', url, body, { 'idempotency-key': newId() }), 201);
    expect(await rowsWith(app, secretOf(made.token))).toEqual([]);
  });
});

describe('a token that is revoked while it is used', () => {
  test('does nothing more once its revocation is answered, however many requests are under way', async () => {
    const { admin } = world;
    const url = `/organization/${admin.organizationId}/apiToken`;
    const made = ok(await admin.post(url, { name: `used ${newId()}`, scope: 'ADMIN' }), 201);
    const headers = { authorization: `Token ${made.token}` };
    const use = (name: string) =>
      app.anonymous('POST', `/organization/${admin.organizationId}/project`, { name }, headers);
    ok(await use(`before ${newId()}`), 201);
    const running = Array.from({ length: 20 }, () => use(`beside ${newId()}`));
    ok(await admin.delete(`${url}/${made.id}`), 204);
    const after = await Promise.all(Array.from({ length: 10 }, () => use(`after ${newId()}`)));
    expect(new Set(statuses(after))).toEqual(new Set([401]));
    for (const answer of await Promise.all(running)) expect([201, 401]).toContain(answer.status);
    expect((await app.anonymous('GET', '/account', undefined, headers)).status).toBe(401);
  });

  test('may not make another for later: what it made before dies with nobody, what it asks after is refused', async () => {
    const { admin } = world;
    const url = `/organization/${admin.organizationId}/apiToken`;
    const made = ok(await admin.post(url, { name: `maker ${newId()}`, scope: 'ADMIN' }), 201);
    const headers = { authorization: `Token ${made.token}` };
    const [revoked, more] = await Promise.all([
      admin.delete(`${url}/${made.id}`),
      app.anonymous('POST', url, { name: `offspring ${newId()}`, scope: 'ADMIN' }, headers),
    ]);
    expect(revoked.status).toBe(204);
    expect([201, 401, 404]).toContain(more.status);
    const late = await app.anonymous('POST', url, { name: `late ${newId()}`, scope: 'ADMIN' }, headers);
    expect(late.status).toBe(401);
  });
});

describe('two requests that take from each other', () => {
  test('a thing deleted by eight at once is deleted once, and an edit beside is done before or told it is gone', async () => {
    const { admin } = world;
    const made = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const answers = await Promise.all([
      ...Array.from({ length: 8 }, () => admin.delete(`/project/${made.id}`)),
      ...Array.from({ length: 8 }, () => admin.put(`/project/${made.id}`, { name: newId() })),
      ...Array.from({ length: 8 }, () => admin.post(`/project/${made.id}/environment`, { name: newId() })),
    ]);
    for (const { status, body } of answers) expect([200, 201, 204, 404, 409], JSON.stringify(body)).toContain(status);
    expect(answers.slice(0, 8).some(({ status }) => status === 204)).toBe(true);
    expect((await admin.get(`/project/${made.id}`)).status).toBe(404);
  });

  test('limits hold for those who come at once: of domains a service has at most a hundred', async () => {
    const { admin, applicationId } = world;
    const url = `/application/${applicationId}/customDomain`;
    const answers = await Promise.all(
      Array.from({ length: 120 }, () =>
        admin.post(url, { domain: `${newId()}.example.com`, generate_certificate: false }),
      ),
    );
    expect(new Set(statuses(answers))).toEqual(new Set([201, 400]));
    expect(ok(await admin.get(url), 200).results).toHaveLength(100);
  });
});
