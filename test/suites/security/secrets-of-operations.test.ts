import { inflateRawSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { allRoutes } from '#app/routes.ts';
import type { Route } from '#platform/http/route.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';
import { EXAMPLE, useEngine } from '#test/harness/engine.ts';
import { callExample, exampleOf } from '../answers.ts';
import { rowsWith } from '../fuzz/digest.ts';
import { ACCOUNTS, alertReceiver, mailReceiver, makeWorld, type World } from '../world.ts';
import { createMarks, mark } from './marks.ts';

/**
 * Marked secrets of a world, in every scope and every kind of credential. Every caller calls every operation, and the marks are looked for
 * in answers, the log and the database; canaries.test.ts covers builds, processes and webhooks.
 */
const SECRETS = [
  'project', 'environment', 'application', 'container', 'helm', 'job', 'terraform', 'override', 'file', 'tf-var',
  'model-key', 'output-header', 'git-token', 'registry', 'charts', 'webhook', 'mcp-header', 'argo-cd', 'dns', 'aws',
  'gcp', 'scaleway', 'vault', 'static-key', 'workflow-webhook', 'alert-webhook', 'alert-mail',
] as const; // prettier-ignore
type Secret = (typeof SECRETS)[number];
const CANARIES = Object.fromEntries(SECRETS.map((name) => [name, mark(name)])) as Record<Secret, string>;
/** Returns a secret of Standard Webhooks: base64 of the mark. */
const whsec = (name: Secret) => `whsec_${Buffer.from(CANARIES[name]).toString('base64')}`;
const { forms, marksIn } = createMarks(CANARIES);

const MODES = ['PRODUCTION', 'STAGING', 'DEVELOPMENT', 'PREVIEW'] as const;
const routes = allRoutes();
/** Selects operations that remove parts of the world: they come last. */
const removes = ({ method, path }: Route) =>
  method === 'DELETE' || /\/(uninstall|delete|lock|cancelDeployment)$/.test(path);
const ordered = [
  ...routes.filter(({ method }) => method === 'GET'),
  ...routes.filter((route) => route.method !== 'GET' && !removes(route)),
  ...routes.filter(removes),
];

const log: string[] = [];
const engine: { current?: ReturnType<typeof useEngine> } = {};
const app = useApp(
  { QUARTERDECK_LOG_LEVEL: 'trace' },
  { runtimeOf: async () => engine.current!.runtime },
  undefined,
  (line) => log.push(line),
);
engine.current = useEngine(app);

const make = async (admin: Actor, url: string, body: unknown): Promise<any> => ok(await admin.post(url, body), 201);

/** Stores a marked secret wherever the API accepts one. */
async function markAll(world: World): Promise<void> {
  const { admin, environmentId } = world;
  const of = `/organization/${admin.organizationId}`;
  await markVariables(world);
  const gitToken = { name: 'marked', type: 'GITHUB', token: CANARIES['git-token'], expired_at: '2020-01-01T00:00:00Z' };
  await make(admin, `${of}/gitToken`, gitToken);
  const config = { username: 'ada', password: CANARIES.registry };
  const registry = { name: 'marked', kind: 'GENERIC_CR', url: 'https://registry.invalid', config };
  await make(admin, `${of}/containerRegistry`, registry);
  const charts = { ...registry, kind: 'HTTPS', skip_tls_verification: false };
  await make(admin, `${of}/helmRepository`, { ...charts, config: { ...config, password: CANARIES.charts } });
  const hook = { target_url: 'https://hooks.invalid/x', events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL'] };
  await make(admin, `${of}/webhook`, { ...hook, target_secret: whsec('webhook') });
  const { organizationId } = admin;
  const webhook_url = `https://chat.invalid/${CANARIES['alert-webhook']}`;
  await make(admin, '/alert-receivers', { ...alertReceiver(organizationId), webhook_url });
  await make(admin, '/alert-receivers', mailReceiver(organizationId, CANARIES['alert-mail']));
  const headers = { Authorization: `Bearer ${CANARIES['mcp-header']}` };
  await make(admin, `${of}/mcpServer`, { name: 'marked', url: 'https://mcp.invalid', headers });
  await markCredentials(admin, of);
  await markCluster(world, of);
  const workflow = {
    name: 'marked',
    model: { type: 'CLAUDE', api_key: CANARIES['model-key'] },
    webhook_secret: whsec('workflow-webhook'),
    outputs: [
      {
        name: 'out',
        url: 'https://out.invalid',
        headers: [{ name: 'Authorization', value: CANARIES['output-header'] }],
      },
    ],
  };
  await make(admin, `/environment/${environmentId}/agenticWorkflow`, workflow);
}

async function markVariables({ admin, projectId, environmentId, applicationId, pathOf }: World): Promise<void> {
  const secret = { key: 'CANARY', value: CANARIES.project };
  const parent = await make(admin, `/project/${projectId}/secret`, secret);
  await make(admin, `/environment/${environmentId}/secret`, { key: 'CANARY_E', value: CANARIES.environment });
  for (const kind of ['application', 'container', 'helm', 'job', 'terraform'] as const) {
    const url = pathOf({ method: 'GET', path: `/${kind}/{${kind}Id}` });
    await make(admin, `${url}/secret`, { key: 'CANARY_S', value: CANARIES[kind] });
    // Not a secret itself, but it contains one once it is expanded.
    await make(admin, `${url}/environmentVariable`, { key: 'URL', value: 'https://x:{{CANARY_S}}@{{CANARY}}/' });
  }
  const url = `/application/${applicationId}/secret`;
  await make(admin, `${url}/${parent.id}/override`, { value: CANARIES.override });
  await make(admin, `${url}/${parent.id}/alias`, { key: 'ALIAS' });
  await make(admin, url, { key: 'FILE', value: `a\n${CANARIES.file}\n`, mount_path: '/key.pem' });
  const terraform = {
    name: 'marked infrastructure',
    backend: { kubernetes: {} },
    terraform_files_source: { git: { git_repository: { url: EXAMPLE, branch: 'HEAD' } } },
    provider_version: { explicit_version: '1.11.4' },
    terraform_variables_source: {
      tf_var_file_paths: [],
      tf_vars: [{ key: 'token', value: CANARIES['tf-var'], secret: true }],
    },
  };
  await make(admin, `/environment/${environmentId}/terraform`, terraform);
}

async function markCredentials(admin: Actor, of: string): Promise<void> {
  const name = 'marked';
  const keys = { type: 'AWS_STATIC', access_key_id: 'AKIA1', secret_access_key: CANARIES.aws };
  await make(admin, `${of}/aws/credentials`, { name, ...keys });
  await make(admin, `${of}/gcp/credentials`, { name, gcp_credentials: CANARIES.gcp });
  const scaleway = { ...ACCOUNTS.scaleway, name, scaleway_secret_key: CANARIES.scaleway };
  await make(admin, `${of}/scaleway/credentials`, scaleway);
}

async function markCluster({ admin, clusterId }: World, of: string): Promise<void> {
  const argoCd = { argocd_url: 'https://argo.invalid', argocd_token: CANARIES['argo-cd'] };
  ok(await admin.post(`/cluster/${clusterId}/argoCdConfig`, argoCd), 200);
  const dns_provider = {
    provider: 'CLOUDFLARE',
    domain: 'apps.example.net',
    email: 'ada@example.net',
    api_token: CANARIES.dns,
  };
  ok(await admin.put(`/cluster/${clusterId}/dnsProvider`, { dns_provider }), 200);
  const cluster = { name: 'marked', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const access = {
    name: 'keys',
    endpoint: { mode: 'AWS_SECRET_MANAGER', region: 'eu-west-3' },
    authentication: {
      mode: 'AWS_STATIC_CREDENTIALS',
      region: 'eu-west-3',
      access_key: 'AKIA1',
      secret_key: CANARIES['static-key'],
    },
  };
  const vault = {
    name: 'vault',
    endpoint: { mode: 'VAULT', url: 'https://vault.invalid' },
    authentication: { mode: 'VAULT_TOKEN', token: CANARIES.vault },
  };
  const accesses = { secret_manager_accesses: [access], additional_secret_manager_accesses: [vault] };
  await make(admin, `${of}/cluster`, { ...cluster, ...accesses });
}

/** Returns callers of every scope, and a role and a policy that close PRODUCTION. Strangers have a suite of their own (tenants.test.ts). */
async function everybody(world: World): Promise<[string, Caller][]> {
  const { admin } = world;
  const of = `/organization/${admin.organizationId}`;
  const withToken = (token: string): Caller['call'] => {
    return (method, url, body, headers) =>
      app.anonymous(method, url, body, { ...headers, authorization: `Token ${token}` });
  };
  const permissions = MODES.map((environment_type) => ({
    environment_type,
    permission: environment_type === 'PRODUCTION' ? 'NO_ACCESS' : 'MANAGER',
  }));
  const project_permissions = [{ project_id: world.projectId, permissions }];
  const role = await make(admin, `${of}/customRole`, { name: newId(), project_permissions });
  const limited = await make(admin, `${of}/apiToken`, { name: newId(), role_id: role.id });
  const opa_policy = `package p
    default allow := false
    allow if input.environment_mode != "PRODUCTION"`;
  const policy = await make(admin, `${of}/policyApiToken`, { name: newId(), opa_policy });
  const callers: [string, Pick<Caller, 'call'>][] = [
    ['role', { call: withToken(limited.token) }],
    ['policy', { call: withToken(policy.token) }],
    ['READ', await admin.withScope('READ')],
    ['DEPLOY', await admin.withScope('DEPLOY')],
    ['ADMIN', admin],
  ];
  return callers as [string, Caller][];
}

/** Returns the contents of the files of an archive of the product: deflated, with sizes in the local headers. */
function unzip(archive: Buffer): string {
  let text = '';
  for (let at = 0; archive.readUInt32LE(at) === 0x04034b50;) {
    const [packed, name, extra] = [
      archive.readUInt32LE(at + 18),
      archive.readUInt16LE(at + 26),
      archive.readUInt16LE(at + 28),
    ];
    const start = at + 30 + name + extra;
    text += inflateRawSync(archive.subarray(start, start + packed)).toString();
    at = start + packed;
  }
  return text;
}

let world: World;
beforeAll(async () => {
  world = await makeWorld(app, 15);
  await markAll(world);
});

const setMode = (mode: string) =>
  app.db
    .updateTable('environment')
    .set({ mode })
    .where('organization_id', '=', world.organizationId)
    .where('id', '=', world.environmentId)
    .execute();

async function callAll(callers: [string, Caller][], of: Route[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const route of of)
    for (const [name, caller] of callers) {
      const answer = await callExample(caller, world, route, exampleOf(world, route));
      const found = marksIn(JSON.stringify(answer));
      if (found.length > 0) wrong.push(`${name}: ${route.id} ${answer.status}: ${found.join(', ')}`);
      if (answer.status === 500) wrong.push(`${name}: ${route.id} 500`);
    }
  return wrong;
}

/** Accepts headers of outputs for callers who may edit the workflow. */
const isShown = (mode: string) => {
  const editors = mode === 'PRODUCTION' ? 'ADMIN' : 'ADMIN|role|policy';
  const line = new RegExp(`^(${editors}): \\w+ 20\\d: output-header$`);
  return (wrong: string) => line.test(wrong);
};

describe('marked secrets', () => {
  test('are in the export of an environment neither as values nor as defaults', async () => {
    for (const query of ['', '?exportSecrets=true']) {
      const answer = await app.server.inject({
        method: 'GET',
        url: `/environment/${world.environmentId}/terraformExport${query}`,
        headers: { authorization: `Token ${world.admin.token}` },
      });
      expect(answer.statusCode).toBe(200);
      const text = unzip(answer.rawPayload);
      expect(text).toContain('CANARY');
      expect(marksIn(text).filter((name) => name !== 'output-header')).toEqual([]);
    }
  });

  test.each(MODES.slice(1))(
    'of a %s environment are in no answer of a GET',
    async (mode) => {
      await setMode(mode);
      const callers = (await everybody(world)).filter(([name]) => ['role', 'READ'].includes(name));
      const gets = routes.filter(({ method }) => method === 'GET');
      const wrong = await callAll(callers, gets);
      expect(wrong.filter((line) => !isShown(mode)(line))).toEqual([]);
    },
    60_000,
  );

  test('of a PRODUCTION environment are in no answer of any operation, whoever calls it', async () => {
    await setMode('PRODUCTION');
    const wrong = await callAll(await everybody(world), ordered);
    expect(wrong.filter((line) => !isShown('PRODUCTION')(line))).toEqual([]);
  }, 240_000);

  test('are in no line of the log, at any level', () => {
    expect(log.length).toBeGreaterThan(1_000);
    const wrong = log.filter((line) => marksIn(line).length > 0);
    expect(wrong.map((line) => line.slice(0, 500))).toEqual([]);
  });

  test('are nowhere in the database in clear: in no event, deployment, plan or log', async () => {
    expect(await rowsWith(app, 'https://x:{{CANARY_S}}@{{CANARY}}/'), 'what is no secret is found').not.toEqual([]);
    for (const { name, form } of forms) {
      const rows = await rowsWith(app, form);
      // Headers of outputs are part of the configuration.
      const wrong = rows.filter(({ table }) => name !== 'output-header' || !/^(service|deployment)/.test(table));
      expect(wrong, name).toEqual([]);
    }
  }, 60_000);
});
