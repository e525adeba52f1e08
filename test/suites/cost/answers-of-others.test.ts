import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Execution, ServiceSnapshot } from '#deployments/index.ts';
import { newId } from '#kernel/ids.ts';
import { createServer } from '#kernel/node-http.ts';
import { LIMITS } from '#kernel/parsing/formats.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { openRegistry } from '#platform/oci/index.ts';
import type { OpenAccess } from '#resources/cluster/index.ts';
import { openSecretManager, type SecretManager } from '#resources/secret-manager-access/managers/index.ts';
import { useArgoCdApps } from '#services/kinds/argocd-app/argocd-app.fixture.ts';
import { jobHooks } from '#services/kinds/job/hooks.ts';
import { recordTerraform } from '#services/kinds/terraform/record.ts';
import { beginRun } from '#services/terraform-state/index.ts';
import { lockState, writeState } from '#services/terraform-state/store.ts';
import { ok, type Actor } from '#test/harness/app.ts';
import { leastBlockedBy, LONGEST_BLOCK_MS } from '#test/harness/blocking.ts';
import { makeExample } from '#test/harness/engine.ts';
import { usePretendedProvider } from '#test/harness/git-provider.ts';

const { app, argo, sync, connected } = useArgoCdApps();
const provider = usePretendedProvider();

const filled = (begin: string, item: string, end: string, bytes: number) =>
  `${begin}${`${item},`.repeat((bytes - begin.length - item.length - end.length) / (item.length + 1))}${item}${end}`;

/** Returns the lists that cost the most to read, each of about `bytes` bytes. */
const heavyLists = (begin: string, end: string, item: string, bytes: number): [what: string, body: string][] => [
  ['many items', filled(begin, item, end, bytes)],
  ['many empty items', filled(begin, '{}', end, bytes)],
  ['lists in lists', `${begin}${'['.repeat(bytes / 2)}`],
  ['one item of many keys', `${begin}{${Array.from({ length: bytes / 20 }, (_, n) => `"k${n}":[]`).join(',')}}${end}`],
  ['an item beside many others', `${begin}${item}${end.slice(0, -1)},"x":[${'{},'.repeat(bytes / 4)}1]}`],
];

describe('an Argo CD', () => {
  const app1 = '{"metadata":{"name":"a"}}';
  test.each(heavyLists('{"items":[', ']}', app1, LIMITS['argo-cd'].bytes - 100))(
    'that lists %s holds up nobody for more than 50 ms',
    async (_what, list) => {
      await connected();
      const body = Buffer.from(list);
      argo.instead = (_request, response) => response.writeHead(200).end(body);
      const asked = argo.requests.length;
      expect(await leastBlockedBy(() => sync())).toBeLessThan(LONGEST_BLOCK_MS);
      expect(argo.requests.length).toBeGreaterThan(asked);
    },
    120_000,
  );

  test('that lists 9,000 apps and 4,000 clusters is read whole and holds up nobody for more than 50 ms', async () => {
    const { admin, organization } = await connected();
    for (let n = 0; n < 9_000; n++)
      argo.put({ name: `app-${n}`, destination: { server: '', name: `cluster ${n % 4_000}` } });
    argo.clusters = Array.from({ length: 4_000 }, (_, n) => ({ server: `https://c${n}`, name: `cluster ${n}` }));
    const answer = (path: string) => Buffer.from(JSON.stringify({ items: itemsOf(path) }));
    const itemsOf = (path: string) =>
      path.includes('/clusters')
        ? argo.clusters
        : [...argo.apps.values()].map(({ name, destination }) => ({ metadata: { name }, spec: { destination } }));
    const [apps, clusters] = [answer('/applications'), answer('/clusters')];
    argo.instead = (request, response) => response.end(request.url!.includes('/clusters') ? clusters : apps);
    expect(await leastBlockedBy(() => sync())).toBeLessThan(LONGEST_BLOCK_MS);
    argo.instead = undefined;
    const [instance] = ok(await admin.get(`${organization}/argoCdDestinationClusterMapping`), 200).results;
    const counts = instance.unlinked_clusters.map((one: { applications_count: number }) => one.applications_count);
    expect(counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(9_000);
  }, 120_000);
});

describe.each([
  ['GITHUB', '[', ']', '{"id":1,"full_name":"a/b","clone_url":"https://x/a/b"}'],
  [
    'BITBUCKET',
    '{"values":[',
    ']}',
    '{"uuid":"a","full_name":"a/b","links":{"clone":[{"name":"https","href":"x:y"}]}}',
  ],
] as const)('a git provider that is asked as %s', (type, begin, end, item) => {
  let admin: Actor;
  beforeEach(async () => {
    admin = await app.organization();
    const body = { name: 'bot', type, token: 'good', git_api_url: provider.origin, workspace: 'acme' };
    ok(await admin.post(`/organization/${admin.organizationId}/gitToken`, body), 201);
  });

  const lists = heavyLists(begin, end, item, LIMITS['json-shape'].bytes - 100);
  test.each(type === 'GITHUB' ? lists.slice(0, -1) : lists)(
    'and lists %s holds up nobody for more than 50 ms, and is 502',
    async (_what, body) => {
      provider.instead = () => ({ status: 200, body });
      const url = `/organization/${admin.organizationId}/account/${type.toLowerCase()}/repository`;
      const statuses: number[] = [];
      const ask = async () => statuses.push((await admin.get(url)).status);
      expect(await leastBlockedBy(ask)).toBeLessThan(LONGEST_BLOCK_MS);
      expect([...new Set(statuses)]).toEqual([body.includes('"x":') ? 200 : 502]);
    },
    60_000,
  );
});

/** Serves one answer to every request. Returns its address. */
async function serve(body: Buffer): Promise<string> {
  const server = createServer((_request, response) => response.end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });
const ANSWER_BYTES = LIMITS['json-shape'].bytes - 100;

/** Returns the result of the work or the message of its error, and the longest time that it blocked others. */
async function measure(work: () => Promise<unknown>): Promise<{ blocked: number; end: unknown }> {
  let end: unknown;
  const blocked = await leastBlockedBy(async () => {
    end = await work().catch((error: Error) => error.message);
  });
  return { blocked, end };
}

describe('a registry', () => {
  const notJson = expect.stringMatching(/^The answer of .*: it is not JSON/);
  // Short texts cost little.
  test.each(heavyLists('{"tags":[', ']}', '"v1"', ANSWER_BYTES).slice(1))(
    'whose list of tags is %s holds up nobody for more than 50 ms',
    async (what, body) => {
      const access = { organizationId: newId(), url: await serve(Buffer.from(body)), credentials: null };
      const { blocked, end } = await measure(() => openRegistry(http, access).tags('team/app'));
      expect(blocked).toBeLessThan(LONGEST_BLOCK_MS);
      expect(end).toEqual(what === 'lists in lists' ? notJson : expect.any(Array));
    },
    60_000,
  );

  test.each(heavyLists('{"layers":[', ']}', '{"digest":"a"}', ANSWER_BYTES))(
    'whose manifest has %s holds up nobody for more than 50 ms',
    async (what, body) => {
      const access = { organizationId: newId(), url: await serve(Buffer.from(body)), credentials: null };
      const { blocked, end } = await measure(() => openRegistry(http, access).manifest('team/app', '1'));
      expect(blocked).toBeLessThan(LONGEST_BLOCK_MS);
      if (what === 'lists in lists') expect(end).toEqual(notJson);
      else if (/^many/.test(what)) expect(end).toContain('it has more than 20000 values');
      else expect(end).toMatchObject({ content: { layers: expect.any(Array) } });
    },
    60_000,
  );
});

describe('a secret manager', () => {
  const ask = async (body: string, work: (manager: SecretManager) => Promise<unknown>) => {
    const endpoint = { mode: 'VAULT', url: await serve(Buffer.from(body)) };
    const access = { endpoint, authentication: { mode: 'VAULT_TOKEN', token: 'x' } } as unknown as OpenAccess;
    const { settings, clock } = app.platform;
    const { signal } = new AbortController();
    const manager = openSecretManager(access, { http, settings, clock, signal, organizationId: newId() });
    return measure(() => work(manager));
  };

  test.each(heavyLists('{"data":{"keys":[', ']}}', '"name"', ANSWER_BYTES).slice(1))(
    'that lists %s holds up nobody for more than 50 ms',
    async (what, body) => {
      const { blocked, end } = await ask(body, (manager) => manager.list(''));
      expect(blocked).toBeLessThan(LONGEST_BLOCK_MS);
      if (/^many/.test(what)) expect(end).toBe('its answer cannot be read: it has more than 20000 values');
      else if (/beside/.test(what)) expect(end).toEqual(['name']);
      else expect(end).toBe('it answered something that is not understood');
    },
    60_000,
  );

  const secrets = heavyLists('{"data":{"data":{"key":"v","more":[', ']}}}', '{}', 1_900_000);
  test.each(secrets.filter(([what]) => /empty|keys/.test(what)))(
    'whose secret has %s holds up nobody for more than 50 ms; one key of it is read',
    async (_what, body) => {
      const { blocked, end } = await ask(body, (manager) => manager.read('database#key'));
      expect(blocked).toBeLessThan(LONGEST_BLOCK_MS);
      expect(end).toBe('v');
    },
    60_000,
  );
});

describe('a job', () => {
  let admin: Actor;
  let example: Awaited<ReturnType<typeof makeExample>>;
  beforeAll(async () => {
    admin = await app.organization();
    example = await makeExample(admin);
  });

  const record = (output: string) => {
    const execution = {
      organizationId: admin.organizationId,
      environmentId: example.environment.id,
      deploymentId: newId(),
      action: 'DEPLOY',
      failure: null,
      outcomes: [{ end: { output } }],
    } as unknown as Execution;
    const service = { serviceId: example.application.id } as unknown as ServiceSnapshot;
    return inTransaction(systemContext(app.platform), (context) => jobHooks.record!(context, service, execution));
  };

  const outputs = (count: number, value: unknown) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`OUT_${n}`, value])));

  test.each([
    ['too many outputs', `{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":[]`).join(',')}}`, /60000 outputs/],
    ['an output of many items', filled('{"OUT":[', '{}', ']}', 1_000_000), /value: /],
    ['lists in lists', '['.repeat(1_000_000), /not JSON/],
    ['15 outputs of 20,000 items', outputs(15, Array(20_000).fill({})), /^OUT_0/],
  ])(
    'whose output is %s holds up nobody for more than 50 ms',
    async (_what, output, expected) => {
      const { blocked, end } = await measure(() => record(output));
      expect(blocked).toBeLessThan(LONGEST_BLOCK_MS);
      expect(String(end)).toMatch(expected);
    },
    60_000,
  );
});

describe('a run of Terraform', () => {
  let admin: Actor;
  let service: { id: string; environmentId: string };
  const owner = () => ({ organizationId: admin.organizationId, serviceId: service.id });
  beforeAll(async () => {
    admin = await app.organization();
    const { application, environment } = await makeExample(admin);
    service = { id: application.id, environmentId: environment.id };
  });

  const record = (backend: object, output: string) => {
    const execution = {
      organizationId: admin.organizationId,
      environmentId: service.environmentId,
      deploymentId: newId(),
      commitId: null,
      action: 'DEPLOY',
      failure: null,
      secrets: ['hunter22'],
      generation: 1,
      outcomes: [{ end: { output } }],
    } as unknown as Execution;
    const snapshot = { serviceId: service.id, spec: { backend } } as unknown as Parameters<typeof recordTerraform>[1];
    return inTransaction(systemContext(app.platform), (context) => recordTerraform(context, snapshot, execution));
  };

  const resource = (n: number, size = 1_500) => ({
    mode: 'managed',
    type: 'terraform_data',
    name: `r${n}`,
    provider: 'provider["terraform.io/builtin/terraform"]',
    instances: [{ attributes: { id: n, text: randomBytes(size / 2).toString('hex'), copy: 'hunter22' } }],
  });
  const stateOf = (resources: object[], outputs: object = {}) => ({
    version: 4,
    serial: 1,
    lineage: 'l',
    resources,
    outputs,
  });

  test('with a state of 30 MB holds up nobody for more than 50 ms; its resources and outputs are kept', async () => {
    const outputs = Object.fromEntries(
      Array.from({ length: 50 }, (_, n) => [`out_${n}`, { value: 'x'.repeat(60_000) }]),
    );
    const resources = Array.from({ length: 9_000 }, (_, n) => resource(n, 3_000));
    const content = Buffer.from(JSON.stringify(stateOf(resources, outputs)));
    expect(content.length).toBeGreaterThan(30e6);
    const credential = await beginRun(app.platform, owner(), { generation: 1, timeoutSeconds: 600 });
    const request = { owner: owner(), credential };
    await lockState(app.platform, request, { ID: 'lock' } as Parameters<typeof lockState>[2]);
    const write = () => writeState(app.platform, request, 'lock', content);
    expect(await leastBlockedBy(write)).toBeLessThan(LONGEST_BLOCK_MS);
    expect(await leastBlockedBy(() => record({ kubernetes: {} }, '{}'))).toBeLessThan(LONGEST_BLOCK_MS);
    const rows = app.db.selectFrom('terraform_resource').where('service_id', '=', service.id);
    expect(await rows.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst()).toEqual({ n: 9_000 });
    const { attributes } = await rows.selectAll().limit(1).executeTakeFirstOrThrow();
    expect(attributes).toMatchObject({ copy: '(sensitive value)' });
    const kept = ok(await admin.get(`/environment/${service.environmentId}/environmentVariable`), 200).results;
    expect(kept.filter((one: { key: string }) => /^out_\d+$/.test(one.key))).toHaveLength(50);
  }, 240_000);

  test.each([
    ['plan of many changes', { show: { resource_changes: Array.from({ length: 6_500 }, change) } }],
    [
      'state of many empty items',
      { state: { ...stateOf([resource(1)]), a: Array.from({ length: 300_000 }, () => []) } },
    ],
  ])('whose answer has a %s holds up nobody for more than 50 ms', async (_what, answer) => {
    const output = JSON.stringify(answer);
    expect(output.length).toBeLessThan(2 ** 20);
    expect(output.length).toBeGreaterThan(800_000);
    expect(await leastBlockedBy(() => record({ user_provided: {} }, output))).toBeLessThan(LONGEST_BLOCK_MS);
  });
});

function change(_: unknown, n: number) {
  const names = { address: `a.r${n}`, mode: 'managed', type: 'a', name: `r${n}`, provider_name: 'p' };
  return { ...names, change: { actions: ['create'], before: null, after: { n } } };
}
