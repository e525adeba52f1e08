import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';

const app = useApp();

interface Border {
  admin: Actor;
  projectId: string;
  source: string;
  target: string;
  serviceId: string;
}

/** Creates an environment with a container and secrets in every scope, and an environment of another mode beside it. */
async function border(mode: string, secrets: ('ENVIRONMENT' | 'SERVICE')[]): Promise<Border> {
  const admin = await app.organization();
  const of = `/organization/${admin.organizationId}`;
  const project = ok(await admin.post(`${of}/project`, { name: newId() }), 201);
  const [source, target] = await Promise.all(
    [mode, 'DEVELOPMENT'].map(async (one, at) =>
      ok(await admin.post(`/project/${project.id}/environment`, { name: `${one} ${at}`, mode: one }), 201),
    ),
  );
  const registry = { name: newId(), kind: 'DOCKER_HUB', url: 'https://docker.io', config: {} };
  const { id: registry_id } = ok(await admin.post(`${of}/containerRegistry`, registry), 201);
  const body = { name: 'web', registry_id, image_name: 'acme/web', tag: '1', auto_preview: true };
  const service = ok(await admin.post(`/environment/${source.id}/container`, body), 201);
  const canary = () => ({ key: 'CANARY', value: `canary-${newId()}` });
  if (secrets.includes('ENVIRONMENT')) ok(await admin.post(`/environment/${source.id}/secret`, canary()), 201);
  if (secrets.includes('SERVICE')) ok(await admin.post(`/container/${service.id}/secret`, canary()), 201);
  return { admin, projectId: project.id, source: source.id, target: target.id, serviceId: service.id };
}

/** Creates two callers to whom PRODUCTION is closed: a token with a policy, and a token with a role. */
async function outsiders({ admin, projectId }: Border): Promise<Caller[]> {
  const of = `/organization/${admin.organizationId}`;
  const opa_policy = `package p
    default allow := false
    allow if input.environment_mode != "PRODUCTION"
    allow if not input.environment_id`;
  const modes = ['DEVELOPMENT', 'PREVIEW', 'STAGING', 'PRODUCTION'];
  const permissions = modes.map((environment_type) => ({
    environment_type,
    permission: environment_type === 'PRODUCTION' ? 'NO_ACCESS' : 'MANAGER',
  }));
  const project_permissions = [{ project_id: projectId, permissions }];
  const role = ok(await admin.post(`${of}/customRole`, { name: newId(), project_permissions }), 201);
  const made = [
    await admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }),
    await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }),
  ];
  return made.map((answer) => {
    const authorization = `Token ${ok(answer, 201).token}`;
    const call: Caller['call'] = (method, url, body, headers) =>
      app.anonymous(method, url, body, { ...headers, authorization });
    return { call, post: (url: string, body?: unknown) => call('POST', url, body) } as Caller;
  });
}

const secretsIn = async ({ admin }: Border, modes: string[]) =>
  app.db
    .selectFrom('variable')
    .leftJoin('service', 'service.id', 'variable.service_id')
    .innerJoin('environment', (join) =>
      join.on((eb) => eb('environment.id', '=', eb.fn.coalesce('variable.environment_id', 'service.environment_id'))),
    )
    .select(['variable.key', 'environment.mode', 'environment.id'])
    .where('variable.organization_id', '=', admin.organizationId)
    .where('variable.is_secret', '=', true)
    .where('environment.mode', 'in', modes)
    .execute();

const OTHERS = ['DEVELOPMENT', 'PREVIEW', 'STAGING'];

describe('a secret of a PRODUCTION environment', () => {
  test.each(['ENVIRONMENT', 'SERVICE'] as const)(
    'in the scope %s gets into no environment of another mode',
    async (scope) => {
      const at = await border('PRODUCTION', [scope]);
      const { admin, source, target, serviceId } = at;
      for (const mode of OTHERS)
        expect(ok(await admin.post(`/environment/${source}/clone`, { name: newId(), mode }), 400).message).toContain(
          'CANARY',
        );
      const clone = { name: 'copy', environment_id: target };
      ok(await admin.post(`/container/${serviceId}/clone`, clone), scope === 'SERVICE' ? 400 : 201);
      const kept = ok(await admin.post(`/environment/${source}/clone`, { name: newId() }), 201);
      expect(kept.mode).toBe('PRODUCTION');
      expect(await secretsIn(at, OTHERS)).toEqual([]);
    },
  );

  test.each(['ENVIRONMENT', 'SERVICE'] as const)(
    'in the scope %s keeps its environment in that mode, which is free again once it is deleted',
    async (scope) => {
      const at = await border('PRODUCTION', [scope]);
      const { admin, source } = at;
      for (const mode of OTHERS) {
        const { errors } = ok(await admin.put(`/environment/${source}`, { mode }), 400);
        expect(errors).toMatchObject([{ field: 'mode', message: expect.stringContaining('CANARY') }]);
      }
      expect(ok(await admin.put(`/environment/${source}`, { name: newId(), mode: 'PRODUCTION' }), 200).mode).toBe(
        'PRODUCTION',
      );
      expect(await secretsIn(at, OTHERS)).toEqual([]);
      const holder = scope === 'SERVICE' ? `/container/${at.serviceId}` : `/environment/${source}`;
      const [secret] = ok(await admin.get(`${holder}/secret`), 200).results.filter(
        ({ key }: { key: string }) => key === 'CANARY',
      );
      ok(await admin.delete(`${holder}/secret/${secret.id}`), 204);
      expect(ok(await admin.put(`/environment/${source}`, { mode: 'STAGING' }), 200).mode).toBe('STAGING');
    },
  );

  test.each([
    ['agenticWorkflow', { name: 'agent', model: { type: 'CLAUDE', api_key: 'canary-key' } }, 'agent'],
    [
      'agenticWorkflow',
      {
        name: 'agent',
        outputs: [{ name: 'out', url: 'https://example.com', headers: [{ name: 'Authorization', value: 'canary' }] }],
      },
      'agent',
    ],
    [
      'terraform',
      {
        name: 'infra',
        backend: { kubernetes: {} },
        terraform_files_source: { git: { git_repository: { url: 'https://github.com/acme/x.git', branch: 'main' } } },
        provider_version: { explicit_version: '1.11.4' },
        terraform_variables_source: {
          tf_var_file_paths: [],
          tf_vars: [{ key: 'token', value: 'canary', secret: true }],
        },
      },
      'infra',
    ],
  ])(
    'in the configuration of a service (%s) is neither cloned nor kept into another mode',
    async (path, body, name) => {
      const { admin, source, target } = await border('PRODUCTION', []);
      const service = ok(await admin.post(`/environment/${source}/${path}`, body), 201);
      // A workflow is cloned with its environment only.
      const clone = await admin.post(`/${path}/${service.id}/clone`, { name: 'copy', environment_id: target });
      if (path !== 'agenticWorkflow') expect(ok(clone, 400).message).toContain(`the configuration of ${name}`);
      expect(
        ok(await admin.post(`/environment/${source}/clone`, { name: newId(), mode: 'STAGING' }), 400).message,
      ).toContain(`the configuration of ${name}`);
      expect(ok(await admin.put(`/environment/${source}`, { mode: 'DEVELOPMENT' }), 400).message).toContain(name);
    },
  );

  test('of a database keeps its environment in that mode, and a clone gets credentials of its own', async () => {
    const { admin, source } = await border('PRODUCTION', []);
    await app.db
      .updateTable('cluster')
      .set({ runtime: 'host' })
      .where('organization_id', '=', admin.organizationId)
      .execute();
    const body = { name: 'store', type: 'POSTGRESQL', version: '18', mode: 'CONTAINER' };
    const { id } = ok(await admin.post(`/environment/${source}/database`, body), 201);
    expect(ok(await admin.put(`/environment/${source}`, { mode: 'DEVELOPMENT' }), 400).message).toContain('PASSWORD');
    const copy = ok(await admin.post(`/environment/${source}/clone`, { name: newId(), mode: 'STAGING' }), 201);
    const [cloned] = ok(await admin.get(`/environment/${copy.id}/database`), 200).results;
    const passwords = await Promise.all(
      [id, cloned.id].map(async (one) => ok(await admin.get(`/database/${one}/masterCredentials`), 200).password),
    );
    expect(new Set(passwords).size).toBe(2);
  });

  test('stays in its mode in a preview', async () => {
    const at = await border('PRODUCTION', ['ENVIRONMENT', 'SERVICE']);
    const preview = { image_name: 'acme/web', tag: '2' };
    ok(await at.admin.post(`/organization/${at.admin.organizationId}/container/preview`, preview), 200);
    expect(await secretsIn(at, OTHERS)).toEqual([]);
    expect(await secretsIn(at, ['PRODUCTION'])).toHaveLength(4);
  });

  test('is copied by nobody whose policy or role closes PRODUCTION, by whichever operation', async () => {
    const at = await border('PRODUCTION', ['ENVIRONMENT', 'SERVICE']);
    const before = await secretsIn(at, [...OTHERS, 'PRODUCTION']);
    for (const outsider of await outsiders(at)) {
      const asked = [
        [`/environment/${at.source}/clone`, { name: newId(), mode: 'DEVELOPMENT' }],
        [`/environment/${at.source}/clone`, { name: newId() }],
        [`/container/${at.serviceId}/clone`, { name: newId(), environment_id: at.target }],
        [`/organization/${at.admin.organizationId}/container/preview`, { image_name: 'acme/web', tag: '2' }],
      ] as const;
      for (const [url, body] of asked) ok(await outsider.post(url, body), 403);
    }
    expect(await secretsIn(at, [...OTHERS, 'PRODUCTION'])).toEqual(before);
  });
});

test.each(['DEPLOY', 'READ'] as const)('a token of scope %s makes no preview: that is a clone', async (scope) => {
  const at = await border('DEVELOPMENT', []);
  const token = await at.admin.withScope(scope);
  const preview = { image_name: 'acme/web', tag: '2' };
  ok(await token.post(`/organization/${at.admin.organizationId}/container/preview`, preview), 403);
});

test('an environment without secrets is cloned from PRODUCTION into any mode', async () => {
  const { admin, source } = await border('PRODUCTION', []);
  for (const mode of OTHERS)
    expect(ok(await admin.post(`/environment/${source}/clone`, { name: mode, mode }), 201).mode).toBe(mode);
});
