import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { allRoutes } from '#app/routes.ts';
import { ok, useApp, type Actor, type Answer } from '#test/harness/app.ts';

const app = useApp();
let admin: Actor;
beforeAll(async () => {
  admin = await app.organization();
});

const HEADER = 'quarterdeck-warnings';
const warningsOf = ({ headers }: Answer) => JSON.parse(String(headers[HEADER])) as string[];
const ignored = (field: string) => `${field}: is no field of this request and is ignored`;
const of = (path: string) => `/organization/${admin.organizationId}/${path}`;

describe('a field that an operation does not know', () => {
  test.each([
    ['a token', 'apiToken', () => ({ name: newId(), scope: 'READ', cluster_id: newId() }), 'cluster_id'],
    ['a token', 'apiToken', () => ({ name: newId(), scope: 'READ', expire_at: '2026-01-01T00:00:00Z' }), 'expire_at'],
    [
      'a token with a policy',
      'policyApiToken',
      () => ({ name: newId(), opa_policy: 'package p\nallow if true', polcy: 1 }),
      'polcy',
    ],
    ['a role', 'customRole', () => ({ name: newId(), project_permission: [] }), 'project_permission'],
    [
      'an entry of a role',
      'customRole',
      () => ({ name: newId(), cluster_permissions: [{ environment_id: newId() }] }),
      'cluster_permissions[0].environment_id',
    ],
    ['an invitation', 'inviteMember', () => ({ email: `${newId()}@example.com`, project_id: newId() }), 'project_id'],
    ['a git token', 'gitToken', () => ({ name: newId(), type: 'GITHUB', token: 'x', read_only: true }), 'read_only'],
    [
      'a registry',
      'containerRegistry',
      () => ({ name: newId(), kind: 'DOCKER_HUB', url: 'https://docker.io', config: {}, allowed_projects: [] }),
      'allowed_projects',
    ],
  ] as const)('of %s is refused, and nothing is made: %s', async (_what, path, body, field) => {
    const before = ok(await admin.get(of(path)), 200).results;
    const answer = await admin.post(of(path), body());
    expect(answer, JSON.stringify(answer.body)).toMatchObject({
      status: 400,
      body: { errors: [{ field, message: 'is no field of this request' }] },
    });
    expect(ok(await admin.get(of(path)), 200).results).toEqual(before);
  });

  test('elsewhere is named in a header, at whatever depth, and ignored', async () => {
    const body = { name: newId(), colour: 'red', 'ünknown field': 1 };
    const made = await admin.post(of('project'), body);
    expect(made.status).toBe(201);
    expect(warningsOf(made)).toEqual(['colour', 'ünknown field'].map(ignored));
    const environment = ok(await admin.post(`/project/${made.body.id}/environment`, { name: 'e' }), 201);
    const answer = await admin.post(`/environment/${environment.id}/application`, {
      name: 'a',
      git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main', depth: 1 },
      ports: [{ internal_port: 80, publicly_accessible: true, public: true }],
    });
    expect(answer.status).toBe(201);
    expect(warningsOf(answer)).toEqual(['git_repository.depth', 'ports[0].public'].map(ignored));
  });

  test('among many has its warning left out, which the last one says, so that the header stays short', async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`${at} ${'ü'.repeat(100)}`, 1]));
    const made = await admin.post(of('project'), { name: newId(), ...many });
    expect(made.status).toBe(201);
    expect(String(made.headers[HEADER]).length).toBeLessThanOrEqual(2048);
    const warnings = warningsOf(made);
    expect(warnings[0]).toBe(ignored(`0 ${'ü'.repeat(100)}`));
    expect(warnings.at(-1)).toBe(`${300 - (warnings.length - 1)} more warnings were left out.`);
  });

  test('but is in its answer is no mistake: clients send back what they have read', async () => {
    const project = ok(await admin.post(of('project'), { name: newId() }), 201);
    const again = await admin.put(`/project/${project.id}`, project);
    expect(again.status).toBe(200);
    expect(again.headers).not.toHaveProperty(HEADER);
    const role = ok(await admin.post(of('customRole'), { name: newId() }), 201);
    ok(await admin.put(of(`customRole/${role.id}`), role), 200);
  });
});

test('a query parameter that an operation does not have is named in the header and ignored', async () => {
  const answer = await admin.get(`${of('project')}?wait=5&nonsense=1`);
  expect(answer.status).toBe(200);
  const unknown = (name: string) => `${name}: is no query parameter of this operation and is ignored`;
  expect(warningsOf(answer)).toEqual(['wait', 'nonsense'].map(unknown));
  expect((await admin.get(of('project'))).headers).not.toHaveProperty(HEADER);
});

test('every operation on tokens, roles, members, policies, registries and credentials refuses unknown fields', () => {
  const guarded = /oken|Role|ember|ContainerRegistry|HelmRepository|Credentials|McpServer/;
  const open = allRoutes().filter(
    (route) =>
      ['POST', 'PUT', 'PATCH'].includes(route.method) &&
      route.body &&
      !route.refusesUnknownFields &&
      guarded.test(route.id) &&
      // It checks whether a chart exists, and stores nothing.
      route.id !== 'checkHelmRepository',
  );
  expect(open.map((route) => route.id)).toEqual([]);
});
