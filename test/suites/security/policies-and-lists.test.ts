import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { allRoutes } from '#app/routes.ts';
import { ok, useApp, type Answer, type Caller } from '#test/harness/app.ts';
import { exampleOf } from '../answers.ts';
import { makeWorld, type World } from '../world.ts';

/**
 * Lists as a token with a policy and a token with a custom role see them. They see one project of an organization, and every other thing is
 * marked. Every GET is asked, so that a new list is covered, or fails.
 */
const app = useApp();
const gets = allRoutes().filter((route) => route.method === 'GET' && route.action !== 'public');

let world: World;
let marks: string[];
const callers: Record<string, Caller> = {};
let shownProjectId: string;

const callerOf = (token: string): Caller => {
  const call: Caller['call'] = (method, url, body, headers) =>
    app.anonymous(method, url, body, { ...headers, authorization: `Token ${token}` });
  return { call, get: (url, headers) => call('GET', url, undefined, headers) } as Caller;
};

beforeAll(async () => {
  world = await makeWorld(app);
  const { admin } = world;
  const of = `/organization/${admin.organizationId}`;
  const project = ok(await admin.post(`${of}/project`, { name: 'shown' }), 201);
  shownProjectId = project.id;
  ok(await admin.post(`/project/${project.id}/environment`, { name: 'shown', cluster_id: world.clusterId }), 201);
  const opa_policy = `package p
    default allow := false
    allow if input.project_id == "${project.id}"`;
  const policy = ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
  const project_permissions = [{ project_id: project.id, is_admin: true }];
  const role = ok(await admin.post(`${of}/customRole`, { name: newId(), project_permissions }), 201);
  const limited = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  callers.policy = callerOf(policy.token);
  callers.role = callerOf(limited.token);
  const tables = ['project', 'environment', 'service'] as const;
  const rows = await Promise.all(
    tables.map((table) =>
      app.db.selectFrom(table).select('id').where('organization_id', '=', admin.organizationId).execute(),
    ),
  );
  const shown = JSON.stringify(ok(await admin.get(`/project/${project.id}/environment`), 200)) + project.id;
  marks = rows.flat().flatMap(({ id }) => (shown.includes(id) ? [] : [id]));
});

const found = (answer: Answer, asked: string): string[] =>
  marks.filter((id) => JSON.stringify(answer.body ?? '').includes(id) && !asked.includes(id));

/** Returns marks of PRODUCTION environments, which the callers by mode must not see, although others of the project are visible. */
async function productionMarks(): Promise<string[]> {
  const { organizationId } = world;
  const environments = await app.db
    .selectFrom('environment')
    .select(['id', 'mode'])
    .where('organization_id', '=', organizationId)
    .execute();
  const closed = environments.filter(({ mode }) => mode === 'PRODUCTION').map(({ id }) => id);
  expect(closed.length).toBeGreaterThan(0);
  expect(closed.length).toBeLessThan(environments.length);
  const services = await app.db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('environment_id', 'in', closed)
    .execute();
  expect(services.length).toBeGreaterThan(5);
  return [...closed, ...services.map(({ id }) => id)];
}

/** Creates a policy and a role that close PRODUCTION and nothing else, with a caller for each. */
async function callersByMode(): Promise<Record<string, Caller>> {
  const { admin } = world;
  const of = `/organization/${admin.organizationId}`;
  const opa_policy = `package p
    default allow := false
    allow if input.environment_mode != "PRODUCTION"
    allow if not input.environment_mode`;
  const policy = ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
  const permissions = ['DEVELOPMENT', 'PREVIEW', 'STAGING', 'PRODUCTION'].map((environment_type) => ({
    environment_type,
    permission: environment_type === 'PRODUCTION' ? 'NO_ACCESS' : 'MANAGER',
  }));
  const projects = ok(await admin.get(`${of}/project`), 200).results;
  const clusters = ok(await admin.get(`${of}/cluster`), 200).results;
  const body = {
    name: newId(),
    project_permissions: projects.map(({ id }: { id: string }) => ({ project_id: id, permissions })),
    cluster_permissions: clusters.map(({ id }: { id: string }) => ({ cluster_id: id, permission: 'ADMIN' })),
  };
  const role = ok(await admin.post(`${of}/customRole`, body), 201);
  const limited = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  return { policy: callerOf(policy.token), role: callerOf(limited.token) };
}

test('a cluster that a policy closes appears in no answer of any GET', async () => {
  const { admin, spareClusterId: closed } = world;
  const of = `/organization/${admin.organizationId}`;
  const { id } = ok(await admin.post(`${of}/onPremise/credentials`, { name: newId() }), 201);
  const account = { cloud_provider: 'ON_PREMISE', credentials: { id }, region: 'here' };
  ok(await admin.post(`${of}/cluster/${closed}/cloudProviderInfo`, account), 201);
  // Policies appear in lists and events too: this policy does not contain the whole id.
  const opa_policy = `package p
    default allow := false
    allow if not startswith(input.cluster_id, "${closed.slice(0, -1)}")
    allow if not input.cluster_id`;
  const limited = callerOf(ok(await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201).token);
  const wrong: string[] = [];
  for (const route of gets) {
    const url = world.pathOf(route) + (exampleOf(world, route).query ?? '');
    const { status, body } = await limited.get(url);
    if (status === 500 || JSON.stringify(body ?? '').includes(closed)) wrong.push(`${route.id}: ${status}`);
  }
  expect(wrong).toEqual([]);
  const listed = ok(await limited.get(`${of}/credentials`), 200).results;
  expect(listed.find(({ credential }: { credential: { id: string } }) => credential.id === id).clusters).toEqual([]);
}, 60_000);

describe('what is closed by the mode of its environment', () => {
  test.each(['policy', 'role'])(
    'to a %s appears in no answer, count, event or stream of any GET',
    async (which) => {
      const closed = await productionMarks();
      const caller = (await callersByMode())[which]!;
      const wrong: string[] = [];
      for (const route of gets) {
        const url = world.pathOf(route) + (exampleOf(world, route).query ?? '');
        const answer = await caller.get(url);
        const text = JSON.stringify(answer.body ?? '');
        const seen = closed.filter((id) => text.includes(id) && !url.includes(id));
        if (answer.status === 500) wrong.push(`${route.id}: 500`);
        if (answer.status === 200 && seen.length > 0) wrong.push(`${route.id}: ${seen[0]}`);
      }
      expect(wrong).toEqual([]);
    },
    60_000,
  );

  test.each(['policy', 'role'])(
    'to a %s is counted nowhere, while the rest of its project is listed',
    async (which) => {
      const caller = (await callersByMode())[which]!;
      const project = `/project/${world.projectId}`;
      ok(await world.admin.post(`${project}/environment`, { name: newId(), mode: 'STAGING' }), 201);
      const all = ok(await world.admin.get(`${project}/environment`), 200).results as { id: string; mode: string }[];
      const open = all.filter(({ mode }) => mode !== 'PRODUCTION').map(({ id }) => id);
      const shown = ok(await caller.get(`${project}/environment?page=1`), 200);
      expect(shown.results.map(({ id }: { id: string }) => id).sort()).toEqual([...open].sort());
      expect(shown.pagination.total_count).toBe(open.length);
      const stats = ok(await caller.get(`${project}/environment/stats`), 200).results;
      expect(stats.map(({ id }: { id: string }) => id).sort()).toEqual([...open].sort());
      const counted = ok(await caller.get(`/organization/${world.organizationId}/project/stats`), 200).results.find(
        ({ id }: { id: string }) => id === world.projectId,
      );
      expect(counted.environment_total_number).toBe(open.length);
    },
  );
});

describe.each(['policy', 'role'])('what a %s denies', (which) => {
  test('appears in no answer, count, event or stream of any GET, and no GET fails by the filter', async () => {
    expect(marks.length).toBeGreaterThan(10);
    const wrong: string[] = [];
    for (const route of gets) {
      const url = world.pathOf(route) + (exampleOf(world, route).query ?? '');
      const answer = await callers[which]!.get(url);
      if (answer.status === 500) wrong.push(`${route.id}: 500`);
      if (answer.status === 200 && found(answer, url).length > 0) wrong.push(`${route.id}: ${found(answer, url)[0]}`);
    }
    expect(wrong).toEqual([]);
  });

  test('is counted nowhere, while what is allowed is listed', async () => {
    const of = `/organization/${world.organizationId}`;
    const caller = callers[which]!;
    const projects = ok(await caller.get(`${of}/project?page=1&page_size=1`), 200);
    expect(projects.results).toMatchObject([{ id: shownProjectId, associated_environments_count: 1 }]);
    expect(projects.pagination.total_count).toBe(1);
    expect(ok(await caller.get(`${of}/project/stats`), 200).results).toEqual([
      { id: shownProjectId, service_total_number: 0, environment_total_number: 1 },
    ]);
    const environments = ok(await caller.get(`${of}/environments?page=1`), 200);
    expect(environments.results).toMatchObject([{ project: { id: shownProjectId } }]);
    expect(environments.pagination.total_count).toBe(1);
    expect(ok(await caller.get(`${of}/services`), 200).results).toEqual([]);
    const { events } = ok(await caller.get(`${of}/events?pageSize=100`), 200);
    const seen = new Set(events.map((event: { project_id: string | null }) => event.project_id));
    expect([...seen].filter((id) => id !== null)).toEqual([shownProjectId]);
  });
});
