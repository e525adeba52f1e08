import type { Insertable } from 'kysely';
import { describe, expect, test } from 'vitest';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { json } from '#platform/database/json.ts';
import { sql, type DB } from '#platform/database/index.ts';
import { makeToken } from '#platform/access/tokens.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
const START = Date.parse('2026-03-01T00:00:00Z');

/** An organization without the events of its own making. */
async function organization(): Promise<Actor> {
  const admin = await app.organization();
  for (const table of ['audit_event', 'audit_target'] as const)
    await app.db.deleteFrom(table).where('organization_id', '=', admin.organizationId).execute();
  return admin;
}

/** Writes events, one a second, and answers their ids, the oldest first. */
async function given(actor: Actor, ...events: Partial<Insertable<DB['audit_event']>>[]): Promise<string[]> {
  const rows = events.map((event, index) => ({
    id: newOrderedId(),
    organization_id: actor.organizationId,
    at: new Date(START + index * 1000),
    event_type: 'UPDATE',
    target_type: 'PROJECT',
    target_id: newId(),
    target_name: `target ${index}`,
    triggered_by: 'ada',
    origin: 'API',
    ...event,
  }));
  await app.db.insertInto('audit_event').values(rows).execute();
  return rows.map((row) => row.id);
}

const path = (actor: Actor, query = '') => `/organization/${actor.organizationId}/events${query}`;
const targetsPath = (actor: Actor, query = '') => `/organization/${actor.organizationId}/targets${query}`;
const idsOf = (answer: { events: { id: string }[] }) => answer.events.map((event) => event.id);
/** Follows a link as a client does. */
const follow = async (actor: Actor, link: string) => {
  const url = new URL(link);
  return ok(await actor.get(`${url.pathname}${url.search}`), 200);
};

describe('events', () => {
  test('are what every change leaves, with the states before and after as JSON text', async () => {
    const admin = await organization();
    const url = `/organization/${admin.organizationId}/project`;
    const project = ok(await admin.post(url, { name: 'a' }, { 'user-agent': 'Terraform provider 1.0' }), 201);
    ok(await admin.put(`/project/${project.id}`, { name: 'b' }), 200);
    const { events, links, organization_max_limit_reached } = ok(await admin.get(path(admin)), 200);
    expect([links, organization_max_limit_reached]).toEqual([{}, false]);
    expect(events).toMatchObject([
      {
        event_type: 'UPDATE',
        target_type: 'PROJECT',
        target_id: project.id,
        target_name: 'b',
        sub_target_type: null,
        project_id: project.id,
        project_name: 'b',
        environment_id: null,
        origin: 'API',
      },
      {
        event_type: 'CREATE',
        original_change: null,
        origin: 'TERRAFORM_PROVIDER',
        user_agent: 'Terraform provider 1.0',
      },
    ]);
    expect(JSON.parse(events[0].original_change)).toMatchObject({ name: 'a' });
    expect(JSON.parse(events[0].change)).toMatchObject({ name: 'b' });
    expect(events[0]).not.toHaveProperty('environment_name');
    expect(events[0].timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('come ten to a page, the newest first, and the links lead through all of them and back', async () => {
    const admin = await organization();
    const ids = (await given(admin, ...Array.from({ length: 23 }, () => ({})))).toReversed();
    const pages = [ok(await admin.get(path(admin)), 200)];
    while (pages.at(-1).links.next) pages.push(await follow(admin, pages.at(-1).links.next));
    expect(pages.map(idsOf)).toEqual([ids.slice(0, 10), ids.slice(10, 20), ids.slice(20)]);
    expect(pages.map((page) => Object.keys(page.links))).toEqual([['next'], ['previous', 'next'], ['previous']]);
    const middle = await follow(admin, pages[2].links.previous);
    expect([idsOf(middle), Object.keys(middle.links)]).toEqual([ids.slice(10, 20), ['previous', 'next']]);
    const first = await follow(admin, middle.links.previous);
    expect([idsOf(first), Object.keys(first.links)]).toEqual([ids.slice(0, 10), ['next']]);
  });

  test('of the same microsecond are all paged through, and new ones do not shift a page', async () => {
    const admin = await organization();
    const at = sql<Date>`timestamptz '2026-03-01 00:00:00.123456Z'` as never;
    const ids = (await given(admin, ...Array.from({ length: 7 }, () => ({ at })))).toReversed();
    const first = ok(await admin.get(path(admin, '?pageSize=3')), 200);
    await given(admin, { at: new Date(START + 86_400_000) });
    const second = await follow(admin, first.links.next);
    const third = await follow(admin, second.links.next);
    expect([...idsOf(first), ...idsOf(second), ...idsOf(third)]).toEqual(ids);
  });

  test('are linked with the filters of the request, under the address that the caller used', async () => {
    const admin = await organization();
    await given(admin, {}, { origin: 'CLI' }, { origin: 'CLI' });
    const answer = ok(
      await admin.get(path(admin, '?pageSize=1&origin=CLI&triggeredBy=ada'), { host: 'deck.example.org:81' }),
      200,
    );
    const next = new URL(answer.links.next);
    expect([next.host, next.pathname]).toEqual(['deck.example.org:81', path(admin)]);
    expect(Object.fromEntries(next.searchParams)).toMatchObject({ pageSize: '1', origin: 'CLI', triggeredBy: 'ada' });
    expect((await follow(admin, answer.links.next)).events).toHaveLength(1);
  });

  test('are chosen by each filter alone and by several together', async () => {
    const admin = await organization();
    const [project, environment, target] = [newId(), newId(), newId()];
    const [plain, deployed, variable, byGrace, byCli, inProject, inEnvironment] = await given(
      admin,
      { target_id: target },
      { event_type: 'DEPLOYED', target_type: 'APPLICATION' },
      { sub_target_type: 'VARIABLE' },
      { triggered_by: 'grace' },
      { origin: 'CLI' },
      { project_id: project },
      { project_id: project, environment_id: environment },
    );
    const chosen = async (query: string) => idsOf(ok(await admin.get(path(admin, `?${query}`)), 200));
    expect(await chosen(`targetId=${target}`)).toEqual([plain]);
    expect(await chosen('eventType=DEPLOYED')).toEqual([deployed]);
    expect(await chosen('targetType=APPLICATION')).toEqual([deployed]);
    expect(await chosen('subTargetType=VARIABLE')).toEqual([variable]);
    expect(await chosen('triggeredBy=grace')).toEqual([byGrace]);
    expect(await chosen('origin=CLI')).toEqual([byCli]);
    expect(await chosen(`serviceProjectId=${project}`)).toEqual([inEnvironment, inProject]);
    expect(await chosen(`serviceEnvironmentId=${environment}`)).toEqual([inEnvironment]);
    expect(await chosen(`serviceProjectId=${project}&origin=CLI`)).toEqual([]);
    expect(await chosen(`eventType=UPDATE&triggeredBy=ada&serviceEnvironmentId=${environment}`)).toEqual([
      inEnvironment,
    ]);
  });

  test('are chosen from a time on and before another, in every spelling of it', async () => {
    const admin = await organization();
    const ids = await given(admin, {}, {}, {}, {});
    const [from, to] = [START + 1000, START + 3000];
    for (const spell of [
      (ms: number) => new Date(ms).toISOString(),
      (ms: number) => `${new Date(ms).toISOString().slice(0, -1)}000000Z`,
      (ms: number) => String(ms / 1000),
      (ms: number) => String(ms),
      (ms: number) => `${ms}000`,
      (ms: number) => `${ms}000000`,
    ])
      expect(
        idsOf(ok(await admin.get(path(admin, `?fromTimestamp=${spell(from)}&toTimestamp=${spell(to)}`)), 200)),
      ).toEqual([ids[2], ids[1]]);
  });

  test.each([
    ['pageSize=0', 'pageSize'],
    ['pageSize=101', 'pageSize'],
    ['fromTimestamp=yesterday', 'fromTimestamp'],
    ['toTimestamp=2026-02-30T00:00:00Z', 'toTimestamp'],
    ['eventType=NOPE', 'eventType'],
    ['targetType=NOPE', 'targetType'],
    ['origin=NOPE', 'origin'],
    ['targetId=nonsense', 'targetId'],
    ['serviceProjectId=nonsense', 'serviceProjectId'],
    ['continueToken=nonsense', 'continueToken'],
    ['stepBackToken=', 'stepBackToken'],
  ])('asked for with %s are 400 and name the field', async (query, field) => {
    const admin = await app.organization();
    expect(await admin.get(path(admin, `?${query}`))).toMatchObject({ status: 400, body: { errors: [{ field }] } });
  });

  test('asked for in both directions at once are 400', async () => {
    const admin = await app.organization();
    expect((await admin.get(path(admin, '?continueToken=a&stepBackToken=b'))).status).toBe(400);
  });

  test('of another organization are never seen, neither by its path nor by ids and tokens of it', async () => {
    const [admin, stranger] = [await organization(), await organization()];
    const [project, target] = [newId(), newId()];
    await given(admin, ...Array(3).fill({ project_id: project, project_name: 'p', target_id: target }));
    const { links } = ok(await admin.get(path(admin, '?pageSize=1')), 200);
    const token = new URL(links.next).searchParams.get('continueToken')!;
    for (const url of [path(admin), targetsPath(admin), path(admin, `?continueToken=${token}`)])
      expect((await stranger.get(url)).status).toBe(404);
    for (const query of [`continueToken=${token}`, `targetId=${target}`, `serviceProjectId=${project}`])
      expect(ok(await stranger.get(path(stranger, `?${query}`)), 200).events).toEqual([]);
    expect(
      ok(await stranger.get(targetsPath(stranger, `?targetType=APPLICATION&targetLevelToFetch=PROJECT`)), 200).targets,
    ).toEqual([]);
  });

  test('are read with any scope, and without credentials not at all', async () => {
    const admin = await app.organization();
    const reader = await admin.withScope('READ');
    for (const url of [path(admin), targetsPath(admin)]) {
      ok(await reader.get(url), 200);
      expect((await app.anonymous('GET', url)).status).toBe(401);
    }
  });

  test('of projects and modes that a role has no access to are left out, also of environments that are gone', async () => {
    const admin = await organization();
    const { hidden, partly, live, dev } = await givenPlaces(admin);
    const ids = await given(
      admin,
      { project_id: hidden, project_name: 'hidden' },
      { project_id: partly, project_name: 'partly' },
      { project_id: partly, project_name: 'partly', environment_id: live, environment_name: 'live' },
      { project_id: partly, project_name: 'partly', environment_id: dev, environment_name: 'dev' },
      { project_id: partly, project_name: 'partly', environment_id: newId(), environment_name: 'gone' },
      {},
    );
    const guest = await givenGuest(admin, [
      { project_id: hidden, modes: ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'] },
      { project_id: partly, modes: ['PRODUCTION'] },
    ]);
    expect(idsOf(await guest(path(admin)))).toEqual([ids[5], ids[3], ids[1]]);
    const { targets } = await guest(targetsPath(admin, '?targetLevelToFetch=PROJECT'));
    expect(targets).toEqual([{ id: partly, name: 'partly' }]);
  });
});

describe('targets of events', () => {
  test('are listed once each under their newest name, by name', async () => {
    const admin = await organization();
    const [first, second] = [newId(), newId()];
    await given(
      admin,
      { target_id: first, target_name: 'old' },
      { target_id: second, target_name: 'b' },
      { target_id: first, target_name: 'New' },
      { target_id: null, target_name: 'nothing' },
    );
    expect(ok(await admin.get(targetsPath(admin)), 200)).toEqual({
      targets: [
        { id: second, name: 'b' },
        { id: first, name: 'New' },
      ],
    });
  });

  test('are chosen by every filter', async () => {
    const admin = await organization();
    const [a, b, c, d] = [newId(), newId(), newId(), newId()];
    await given(
      admin,
      { target_id: a, target_name: 'a', event_type: 'CREATE' },
      { target_id: b, target_name: 'b', target_type: 'WEBHOOK' },
      { target_id: c, target_name: 'c', triggered_by: 'grace' },
      { target_id: d, target_name: 'd', origin: 'GIT' },
    );
    const names = async (query: string) =>
      ok(await admin.get(targetsPath(admin, `?${query}`)), 200).targets.map((target: { name: string }) => target.name);
    expect(await names('eventType=CREATE')).toEqual(['a']);
    expect(await names('targetType=WEBHOOK')).toEqual(['b']);
    expect(await names('triggeredBy=grace')).toEqual(['c']);
    expect(await names('origin=GIT')).toEqual(['d']);
    expect(await names(`fromTimestamp=${START + 1000}&toTimestamp=${START + 3000}`)).toEqual(['b', 'c']);
  });

  test('that are environments take a project, services a project and an environment, unless the level is asked for', async () => {
    const admin = await organization();
    const [project, environment, service, other] = [newId(), newId(), newId(), newId()];
    const place = { project_id: project, project_name: 'shop', environment_id: environment, environment_name: 'live' };
    await given(
      admin,
      { ...place, target_type: 'APPLICATION', target_id: service, target_name: 'front' },
      { ...place, target_type: 'ENVIRONMENT', target_id: environment, target_name: 'live' },
      {
        target_type: 'APPLICATION',
        project_id: other,
        project_name: 'other',
        environment_id: other,
        environment_name: 'x',
      },
    );
    const ask = (query: string) => admin.get(targetsPath(admin, `?${query}`));
    const refused = async (query: string) =>
      ok(await ask(query), 400).errors.map((error: { field: string }) => error.field);
    const found = async (query: string) => ok(await ask(query), 200).targets;

    expect(await refused('targetType=ENVIRONMENT')).toEqual(['projectId']);
    expect(await refused('targetType=APPLICATION')).toEqual(['projectId']);
    expect(await refused(`targetType=APPLICATION&projectId=${project}`)).toEqual(['environmentId']);
    expect(await refused('targetType=APPLICATION&targetLevelToFetch=ENVIRONMENT')).toEqual(['projectId']);

    expect(await found(`targetType=ENVIRONMENT&projectId=${project}`)).toEqual([{ id: environment, name: 'live' }]);
    expect(await found(`targetType=APPLICATION&projectId=${project}&environmentId=${environment}`)).toEqual([
      { id: service, name: 'front' },
    ]);
    expect(await found('targetType=APPLICATION&targetLevelToFetch=PROJECT')).toEqual([
      { id: other, name: 'other' },
      { id: project, name: 'shop' },
    ]);
    expect(await found(`targetType=APPLICATION&targetLevelToFetch=ENVIRONMENT&projectId=${project}`)).toEqual([
      { id: environment, name: 'live' },
    ]);
    expect(await found('targetType=PROJECT')).toEqual([]);
  });

  test.each(['AGENTIC_WORKFLOW', 'APPLICATION', 'CONTAINER', 'DATABASE', 'JOB', 'HELM', 'TERRAFORM'])(
    'of the type %s are those of a service',
    async (type) => {
      const admin = await app.organization();
      expect((await admin.get(targetsPath(admin, `?targetType=${type}&projectId=${newId()}`))).status).toBe(400);
    },
  );
});

/** Two projects, one of them with an environment of two modes. */
async function givenPlaces(admin: Actor) {
  const { organizationId } = admin;
  const [hidden, partly, live, dev] = [newId(), newId(), newId(), newId()];
  const cluster = await app.db
    .selectFrom('cluster')
    .select('id')
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow();
  await app.db
    .insertInto('project')
    .values([hidden, partly].map((id) => ({ id, organization_id: organizationId, name: id })))
    .execute();
  await app.db
    .insertInto('environment')
    .values(
      [
        { id: live, mode: 'PRODUCTION' },
        { id: dev, mode: 'DEVELOPMENT' },
      ].map((one) => ({
        ...one,
        organization_id: organizationId,
        project_id: partly,
        cluster_id: cluster.id,
        name: one.mode,
      })),
    )
    .execute();
  return { hidden, partly, live, dev };
}

/** Reads with a token of a custom role that has no access to some modes of projects. */
async function givenGuest(admin: Actor, projects: { project_id: string; modes: string[] }[]) {
  const [role, id] = [newId(), newId()];
  const { token, hash } = makeToken(id);
  const permissions = {
    clusters: [],
    projects: projects.map(({ project_id, modes }) => ({
      project_id,
      is_admin: false,
      permissions: modes.map((environment_type) => ({ environment_type, permission: 'NO_ACCESS' })),
    })),
  };
  const common = { organization_id: admin.organizationId, name: 'guest' };
  await app.db
    .insertInto('role')
    .values({ ...common, id: role, built_in: false, permissions: json(permissions) })
    .execute();
  await app.db
    .insertInto('api_token')
    .values({ ...common, id, role_id: role, secret_hash: hash, created_by: admin.userId })
    .execute();
  return async (url: string) =>
    ok(await app.anonymous('GET', url, undefined, { authorization: `Token ${token}` }), 200);
}
