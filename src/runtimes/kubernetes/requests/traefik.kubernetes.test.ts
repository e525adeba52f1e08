import { randomUUID, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:http2';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { hostOf, newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { GatewayRequests, Handle, WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { installApis } from '#test/harness/kubernetes/apis.ts';
import { findTraefik, Traefik } from '#test/harness/kubernetes/traefik.ts';
import { selfSigned } from '#test/harness/self-signed.ts';
import { makeAccount, type ManifestObject } from '#test/harness/kubernetes-account.ts';
import { list, pathOf } from '../cluster.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from '../index.ts';
import { namespaceOf, ofService } from '../labels.ts';
import { rbacManifest } from '../rights.ts';
import { openCluster, removeMade } from '../testing.ts';

const environment = inject('kubernetes');
const isLeftOut = environment.directory === null || findTraefik() === null;
if (isLeftOut)
  console.warn('Left out: a real gateway. It needs a cluster of the tests, and the program of `.ci/traefik`.');

const ACCOUNT = `counts-${randomUUID().slice(0, 8)}`;
const { options, cluster } = openCluster(environment, randomUUID());
const { connection } = cluster;
let runtime: KubernetesRuntime;
let traefik: Traefik;
let removeApis: () => Promise<void>;

const WEB: WorkloadPort = { id: 'web', name: 'web', internalPort: 8080, externalPort: 443, protocol: 'HTTP', publiclyAccessible: true, isDefault: true }; // prettier-ignore
const OTHER: WorkloadPort = { ...WEB, id: 'other', name: 'other', internalPort: 8081, isDefault: false };
const RPC: WorkloadPort = { ...WEB, id: 'rpc', name: 'rpc', internalPort: 9090, protocol: 'GRPC', isDefault: false };

/** Release that answers with a text on two ports, and on none of its port of gRPC. */
function specOf(text: string): WorkloadSpec {
  const identity = newIdentity(cluster.installation);
  const host = hostOf(identity);
  return newSpec(identity, BUSYBOX_IMAGE, {
    ...programOf(text),
    resources: { cpuMilli: 50, memoryMib: 32 },
    ports: [WEB, OTHER, RPC],
    routes: [
      { host, portId: 'web' },
      { host: `domain-${host}`, portId: 'web' },
      { host: `other-${host}`, portId: 'other' },
      { host: `rpc-${host}`, portId: 'rpc' },
    ],
  });
}

const programOf = (text: string): Pick<WorkloadSpec, 'entrypoint'> => ({
  entrypoint: [
    'sh',
    '-c',
    `trap "exit 0" TERM; mkdir -p /www; echo ok > /www/healthz; echo ${text} > /www/index.html; httpd -p 8081 -h /www; httpd -f -p 8080 -h /www & wait`,
  ],
});

async function deploy(spec: WorkloadSpec): Promise<{ handle: Handle; lines: string[] }> {
  const context = newContext();
  await runtime.check();
  const handle = await runtime.submit(spec, context);
  await runtime.progress!(handle, context);
  return { handle, lines: context.lines };
}

const label = (path: string, labels: Record<string, string | null>) =>
  connection.call('PATCH', path, { body: { metadata: { labels } }, type: 'application/merge-patch+json' });

/** Waits until all pods of Traefik answer for a host with a status: they follow the cluster a moment later. */
async function answers(host: string, status: number, body?: string, pods = 1): Promise<void> {
  for (let pod = 0; pod < pods; pod++)
    await until(
      () => traefik.get(host, '/', pod),
      (answer) => answer.status === status && (body === undefined || answer.body === `${body}\n`),
      20_000,
    );
}

/** Calls a method of gRPC; returns the status of HTTP. */
async function callRpc(host: string): Promise<number> {
  const session = connect(await traefik.origin());
  const headers = { ':method': 'POST', ':path': '/a.B/c', ':authority': host, 'content-type': 'application/grpc' };
  const stream = session.request(headers);
  stream.end();
  const [answer] = (await once(stream, 'response')) as [Record<string, number>];
  stream.resume();
  session.close();
  return answer[':status']!;
}

/** Asks for a web socket, which the program of the tests answers as any request; returns the status. */
async function askForSocket(host: string): Promise<number> {
  const headers = { host, connection: 'Upgrade', upgrade: 'websocket' };
  const [answer] = (await once(get(await traefik.origin(), { headers, agent: false }), 'response')) as [
    IncomingMessage,
  ];
  answer.resume();
  return answer.statusCode!;
}

const requestsOf = (found: GatewayRequests | null, { serviceId }: WorkloadSpec['identity']) =>
  found?.counts?.services.find((one) => one.serviceId === serviceId);

beforeAll(async () => {
  if (isLeftOut) return;
  removeApis = await installApis(environment);
  traefik = await Traefik.start(environment);
  const objects = rbacManifest(ACCOUNT) as ManifestObject[];
  const account = await makeAccount(environment, cluster, objects, ACCOUNT);
  runtime = createKubernetesRuntime({
    ...options,
    access: openCluster({ kubeconfig: account }, cluster.installation).options.access,
  });
}, 120_000);
afterAll(async () => {
  if (!isLeftOut) {
    await removeMade(cluster);
    await traefik.stop();
    await removeApis();
    await runtime.close();
  }
  await connection.close();
}, 120_000);

describe.skipIf(isLeftOut).each([
  ['Gateway', true],
  ['Ingress', false],
])('a service behind a real %s', (_kind, isGateway) => {
  let spec = specOf('first');
  let handle: Handle;
  const host = hostOf(spec.identity);

  const count = async (since: string | null) => runtime.requests!([handle], since, AbortSignal.timeout(15_000));

  test('is reached at each of its hosts, through a rollout, a stop and a restart', { timeout: 120_000 }, async () => {
    await label(pathOf('Gateway', 'traefik', 'traefik'), { 'quarterdeck.gateway': isGateway ? 'true' : null });
    const first = await deploy(spec);
    expect(first.lines).toEqual([]);
    for (const prefix of ['', 'domain-', 'other-']) await answers(`${prefix}${host}`, 200, 'first');
    expect((await traefik.get('unknown.example.com', '/')).status).toBe(404);

    let isRolledOut = false;
    const failures: number[] = [];
    const traffic = (async () => {
      while (!isRolledOut) {
        const { status } = await traefik.get(host, '/');
        if (status !== 200) failures.push(status);
      }
    })();
    spec = nextSpec(spec, programOf('second'));
    ({ handle } = await deploy(spec));
    await answers(host, 200, 'second');
    isRolledOut = true;
    await traffic;
    expect(failures).toEqual([]);

    await runtime.stop(spec.identity, handle, newContext());
    await answers(host, isGateway ? 503 : 404);
    spec = nextSpec(spec);
    ({ handle } = await deploy(spec));
    await answers(host, 200, 'second');
    const kind = isGateway ? 'HTTPRoute' : 'Ingress';
    expect(await list(cluster, kind, namespaceOf(spec.identity), ofService(spec.identity))).not.toEqual([]);
  });

  test(
    'has its requests counted by status and time, each once, by all pods of the gateway',
    { timeout: 120_000 },
    async () => {
      const first = await count(null);
      expect(first).toMatchObject({ counts: null, problems: [] });
      const before = await count(first!.look);
      expect(requestsOf(before, spec.identity)).toMatchObject({ statuses: [0, 0, 0, 0, 0] });
      for (let n = 0; n < 3; n++) await traefik.get(host, '/');
      await traefik.get(`other-${host}`, '/');
      for (let n = 0; n < 2; n++) await traefik.get(`domain-${host}`, '/missing');
      expect(await callRpc(`rpc-${host}`)).toBe(502);
      expect(await askForSocket(host)).toBe(200);
      const after = await count(before!.look);
      const { statuses, latencies } = requestsOf(after, spec.identity)!;
      expect(statuses).toEqual([0, 4, 0, 2, 1]);
      expect(latencies.reduce((sum, one) => sum + one, 0)).toBe(7);

      // A look of another process in between: this one does not know what that has counted.
      expect(await count(first!.look)).toMatchObject({ counts: null });

      await traefik.scale(2);
      const third = await count(null);
      await answers(host, 200, 'second', 2);
      await traefik.get(host, '/', 0);
      const fourth = await count(third!.look);
      expect(requestsOf(fourth, spec.identity)!.statuses[1]).toBeGreaterThanOrEqual(3);
      await traefik.scale(1);
      await traefik.replace();
      await answers(host, 200, 'second');
      const fifth = await count(fourth!.look);
      expect(requestsOf(fifth, spec.identity)!.statuses[1]).toBe(1);
    },
  );
});

describe.skipIf(isLeftOut)('a custom domain with a certificate', () => {
  const domain = `${randomUUID().slice(0, 8)}.example.com`;
  const spec = specOf('secured');
  const secured = { ...spec, routes: [...spec.routes, { host: domain, portId: 'web', certificate: true }] };

  test('is reached by HTTPS with that certificate through the real Ingress', { timeout: 90_000 }, async () => {
    await label(pathOf('Gateway', 'traefik', 'traefik'), { 'quarterdeck.gateway': null });
    await connection.call('POST', pathOf('ClusterIssuer'), {
      body: { apiVersion: 'cert-manager.io/v1', kind: 'ClusterIssuer', metadata: { name: 'authority', labels: { 'quarterdeck.issuer': 'true' } }, spec: { selfSigned: {} } }, // prettier-ignore
    });
    await deploy(secured);
    const [certificate] = await list(cluster, 'Certificate', namespaceOf(spec.identity), ofService(spec.identity));
    const { cert, key } = selfSigned(domain);
    // The part of cert-manager.
    await connection.call('POST', pathOf('Secret', namespaceOf(spec.identity)), {
      body: { metadata: { name: certificate!.metadata.name }, type: 'kubernetes.io/tls', stringData: { 'tls.crt': cert, 'tls.key': key } }, // prettier-ignore
    });
    const { fingerprint256 } = new X509Certificate(cert);
    await until(
      () => traefik.certificateOf(domain),
      (shown) => shown === fingerprint256,
      20_000,
    );
  });

  test('has no certificate at a Gateway of Traefik, and its deployment says so', { timeout: 90_000 }, async () => {
    await label(pathOf('Gateway', 'traefik', 'traefik'), { 'quarterdeck.gateway': 'true' });
    const { lines } = await deploy(nextSpec(secured));
    expect(lines).toEqual([
      expect.stringMatching(
        `^Gateway traefik/traefik does not serve ${domain} by HTTPS with its certificate yet: it has not taken the ListenerSet `,
      ),
      `The certificate of ${domain} is being obtained.`,
    ]);
    await answers(domain, 200, 'secured');
  });
});
