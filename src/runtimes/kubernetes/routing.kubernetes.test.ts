import { randomUUID } from 'node:crypto';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { hostOf, newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';
import { BUSYBOX_IMAGE } from '#test/harness/docker-images.ts';
import { installApis } from '#test/harness/kubernetes/apis.ts';
import { list, pathOf, type Kind } from './cluster.ts';
import { unlessGone } from './errors.ts';
import { createKubernetesRuntime, type KubernetesRuntime } from './index.ts';
import type { ClusterObject } from './kinds.ts';
import { namespaceOf, ofService } from './labels.ts';
import type { RouteObject } from './outside.ts';
import { openCluster, removeMade } from './testing.ts';

const environment = inject('kubernetes');
/** Test of what a whole cluster has: only for a cluster that the tests started. */
const ownTest = test.skipIf(environment.directory === null);
const { options, cluster } = openCluster(environment, randomUUID());
const { connection } = cluster;
let runtime: KubernetesRuntime;
let removeApis: () => Promise<void>;

const WEB: WorkloadPort = { id: 'web', name: 'web', internalPort: 8080, externalPort: 443, protocol: 'HTTP', publiclyAccessible: true, isDefault: true }; // prettier-ignore
const RPC: WorkloadPort = { ...WEB, id: 'rpc', name: 'rpc', internalPort: 9090, protocol: 'GRPC', isDefault: false };
const RAW: WorkloadPort = { ...WEB, id: 'raw', name: 'raw', externalPort: 30_500, protocol: 'TCP' };

function specOf(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const script = 'trap "exit 0" TERM; mkdir -p /www; echo ok > /www/healthz; httpd -f -p 8080 -h /www & wait';
  const identity = newIdentity(cluster.installation);
  return newSpec(identity, BUSYBOX_IMAGE, {
    entrypoint: ['sh', '-c', script],
    resources: { cpuMilli: 50, memoryMib: 32 },
    ports: [WEB, RPC],
    routes: [
      { host: hostOf(identity), portId: 'web' },
      { host: `rpc-${hostOf(identity)}`, portId: 'rpc' },
    ],
    ...changes,
  });
}

/** Deploys a release; `meanwhile` runs again and again until it is rolled out and reached: routes come once its pods are ready. */
async function deploy(spec: WorkloadSpec, meanwhile: () => Promise<void> = async () => undefined) {
  const context = newContext();
  // Finds what changed in the cluster since the last deployment.
  await runtime.check();
  const handle = await runtime.submit(spec, context);
  let end: PromiseSettledResult<unknown> | undefined;
  const ending = Promise.allSettled([runtime.progress!(handle, context)]).then(([settled]) => (end = settled));
  await until(
    async () => meanwhile(),
    () => end !== undefined,
    60_000,
  );
  const settled = await ending;
  if (settled.status === 'rejected') throw settled.reason;
  return { handle, lines: context.lines };
}

const listOf = <T extends ClusterObject>(kind: Kind, { identity }: WorkloadSpec) =>
  list<T>(cluster, kind, namespaceOf(identity), ofService(identity));
const label = (path: string, labels: Record<string, string | null>) =>
  connection.call('PATCH', path, { body: { metadata: { labels } }, type: 'application/merge-patch+json' });
const setStatus = (path: string, status: object) =>
  unlessGone(connection.call('PATCH', `${path}/status`, { body: { status }, type: 'application/merge-patch+json' }));

/** Answers for all routes and ListenerSets of a service as the controller of their Gateway would. */
async function answerRoutes(spec: WorkloadSpec, accepted: { status: string; reason: string; message: string }) {
  for (const { metadata } of await listOf('ListenerSet', spec)) {
    const condition = { type: 'Accepted', lastTransitionTime: new Date().toISOString(), ...accepted };
    await setStatus(pathOf('ListenerSet', metadata.namespace, metadata.name), { conditions: [condition] });
  }
  for (const kind of ['HTTPRoute', 'GRPCRoute'])
    for (const route of await listOf<RouteObject>(kind, spec)) {
      const about = { observedGeneration: route.metadata.generation, lastTransitionTime: new Date().toISOString() };
      const conditions = [
        { type: 'Accepted', ...about, ...accepted },
        { type: 'ResolvedRefs', ...about, status: 'True', reason: 'ResolvedRefs', message: '' },
      ];
      const parents = route.spec.parentRefs.map((parentRef) => ({
        parentRef,
        controllerName: 'test.example/c',
        conditions,
      }));
      await setStatus(pathOf(kind, route.metadata.namespace, route.metadata.name), { parents });
    }
}
const ACCEPTED = { status: 'True', reason: 'Accepted', message: '' };

const GATEWAY = pathOf('Gateway', 'default', 'public');
const ISSUER = pathOf('ClusterIssuer', undefined, 'authority');

beforeAll(async () => {
  removeApis = await installApis(environment);
  await connection.call('POST', pathOf('Gateway', 'default'), {
    body: {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'public' },
      spec: { gatewayClassName: 'test', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
  });
  await connection.call('POST', pathOf('ClusterIssuer'), {
    body: { apiVersion: 'cert-manager.io/v1', kind: 'ClusterIssuer', metadata: { name: 'authority' }, spec: { selfSigned: {} } }, // prettier-ignore
  });
  runtime = createKubernetesRuntime(options);
}, 120_000);
afterAll(async () => {
  await removeMade(cluster);
  await removeApis();
  await connection.close();
  await runtime.close();
}, 120_000);

ownTest(
  'a check tells what the cluster has and has not chosen yet, and which rights an account lacks for it',
  async () => {
    const { ok, limits } = await runtime.check();
    expect(ok).toBe(true);
    const all = limits.join('\n');
    expect(all).toContain('1 Gateway is there and none is chosen: label one with `quarterdeck.gateway=true`');
    expect(all).toMatch(/Pods are not measured: .*Install metrics-server/);
  },
);

describe('a service with public HTTP and gRPC ports', () => {
  ownTest('is attached to the chosen Gateway, and falls back to Ingress without one', { timeout: 90_000 }, async () => {
    const spec = specOf();
    await deploy(spec);
    expect(await listOf('Ingress', spec)).toHaveLength(1);
    await label(GATEWAY, { 'quarterdeck.gateway': 'true' });
    const through = nextSpec(spec);
    const { lines } = await deploy(through, () => answerRoutes(spec, ACCEPTED));
    expect(lines).toEqual([]);
    expect(await listOf('Ingress', spec)).toEqual([]);
    const [http] = await listOf<RouteObject>('HTTPRoute', spec);
    expect(http!.spec).toMatchObject({
      hostnames: [hostOf(spec.identity)],
      parentRefs: [{ kind: 'Gateway', namespace: 'default', name: 'public' }],
      rules: [{ backendRefs: [{ name: spec.hostname, port: 8080 }] }],
    });
    const [grpc] = await listOf<RouteObject>('GRPCRoute', spec);
    expect(grpc!.spec.hostnames).toEqual([`rpc-${hostOf(spec.identity)}`]);
    // A port that is public no longer loses its route, and its release keeps the other.
    const refusal = { status: 'False', reason: 'NotAllowedByListeners', message: 'No listener takes it.' };
    const fewer = nextSpec(through, { ports: [WEB], routes: spec.routes.slice(0, 1) });
    const refused = await deploy(fewer, () => answerRoutes(spec, refusal));
    expect(await listOf('GRPCRoute', spec)).toEqual([]);
    expect(refused.lines.join('\n')).toMatch(
      /Gateway default\/public does not lead contract-z\S+ to the service: No listener takes it\. Let its listeners take routes of the namespace qd-/,
    );
    await label(GATEWAY, { 'quarterdeck.gateway': null });
    await deploy(nextSpec(fewer));
    expect([await listOf('HTTPRoute', spec), (await listOf('Ingress', spec)).length]).toEqual([[], 1]);
    await runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());
    expect(await listOf('Ingress', spec)).toEqual([]);
  });
});

ownTest(
  'a candidate that fails leaves routes, Service and policy of the release before as they are, and nothing of its own',
  { timeout: 90_000 },
  async () => {
    const KINDS: Kind[] = ['Service', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget', 'Secret'];
    const raw = { ...RAW, internalPort: 7000 };
    const spec = specOf({ ports: [WEB, raw], routes: [], instances: { min: 2, max: 2 } });
    const published = { ...spec, routes: [{ host: hostOf(spec.identity), portId: 'web' }] };
    const { handle } = await deploy(published);
    const objects = async () => {
      const found = await Promise.all(KINDS.map((kind) => listOf(kind, spec)));
      return found.flat().map(({ kind, metadata, spec: of }) => [kind, metadata.name, metadata.uid, of]);
    };
    const before = await objects();
    const bad = nextSpec(published, {
      entrypoint: ['sh', '-c', 'exit 3'],
      readyTimeoutSeconds: 4,
      instances: { min: 1, max: 1 },
      ports: [{ ...WEB, internalPort: 9999 }],
      routes: [{ host: `other-${hostOf(spec.identity)}`, portId: 'web' }],
      readiness: null,
    });
    await expect(deploy(bad)).rejects.toMatchObject({ code: 'not_ready' });
    expect(await objects()).toEqual(before);
    await expect.poll(() => runtime.observe(handle)).toMatchObject({ state: 'running', generation: 1, drift: [] });
    await runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());
    expect(await objects()).toEqual([]);
  },
);

describe('a custom domain that asks for a certificate', () => {
  const domain = `${randomUUID().slice(0, 8)}.example.com`;
  const withDomain = () => {
    const spec = specOf({ ports: [WEB] });
    return { ...spec, routes: [...spec.routes.slice(0, 1), { host: domain, portId: 'web', certificate: true }] };
  };
  const failed = {
    conditions: [
      {
        type: 'Ready',
        status: 'False',
        reason: 'DoesNotExist',
        message: '',
        lastTransitionTime: '2030-01-01T00:00:00Z',
      },
      { type: 'Issuing', status: 'False', reason: 'Failed', message: 'the order is invalid', lastTransitionTime: '2030-01-01T00:00:00Z' }, // prettier-ignore
    ],
  };
  const issued = {
    notAfter: '2030-04-01T00:00:00Z',
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2030-01-01T00:00:00Z' },
    ],
  };

  ownTest(
    'gets one from the chosen issuer, by Ingress and at a Gateway, and tells its state',
    { timeout: 90_000 },
    async () => {
      const spec = withDomain();
      const { lines } = await deploy(spec);
      expect(lines.join('\n')).toMatch(
        new RegExp(`No certificate is obtained for ${domain}. The cluster has no issuer`),
      );
      expect(await runtime.certificates!([domain])).toMatchObject([{ host: domain, state: 'UNSUPPORTED' }]);
      await label(ISSUER, { 'quarterdeck.issuer': 'true' });
      const second = nextSpec(spec);
      expect((await deploy(second)).lines.join('\n')).toContain(`The certificate of ${domain} is being obtained.`);
      const [certificate] = await listOf('Certificate', spec);
      const { name, namespace } = certificate!.metadata;
      expect(certificate!['spec']).toMatchObject({
        dnsNames: [domain],
        issuerRef: { kind: 'ClusterIssuer', name: 'authority' },
      });
      const [ingress] = await listOf('Ingress', spec);
      expect(ingress!['spec']).toMatchObject({ tls: [{ hosts: [domain], secretName: name }] });
      await setStatus(pathOf('Certificate', namespace, name), failed);
      const error = 'the order is invalid.';
      expect(await runtime.certificates!([domain])).toMatchObject([{ state: 'FAILED', lastError: error }]);
      await label(GATEWAY, { 'quarterdeck.gateway': 'true' });
      const third = await deploy(nextSpec(second), () => answerRoutes(spec, ACCEPTED));
      expect(third.lines).toEqual([
        `The certificate of ${domain} was not obtained: ${error} It is tried again by itself.`,
      ]);
      const [set] = await listOf('ListenerSet', spec);
      expect(set!['spec']).toMatchObject({
        parentRef: { kind: 'Gateway', namespace: 'default', name: 'public' },
        listeners: [{ hostname: domain, protocol: 'HTTPS', tls: { certificateRefs: [{ name }] } }],
      });
      await setStatus(pathOf('Certificate', namespace, name), issued);
      expect(await runtime.certificates!([domain, 'other.example.com'])).toEqual([
        { host: domain, state: 'ISSUED', expiresAt: Date.parse(issued.notAfter), lastError: null },
        { host: 'other.example.com', state: 'PENDING', expiresAt: null, lastError: null },
      ]);
      await label(GATEWAY, { 'quarterdeck.gateway': null });
      await runtime.remove({ ...spec.identity, generation: 2 ** 40 }, null, newContext());
      expect(await listOf('Certificate', spec)).toEqual([]);
    },
  );
});

describe('a public TCP port', () => {
  ownTest(
    'is reached at every node, and at the address of a load balancer once there is one',
    { timeout: 60_000 },
    async () => {
      const spec = specOf({ ports: [RAW], routes: [], readiness: null });
      const { lines } = await deploy(spec);
      const [, port] = /every node leads to TCP 8080 at port (\d+)/.exec(lines.join('\n'))!;
      const answer = async () => (await request(`http://${environment.nodeAddress}:${port}/healthz`)).body.text();
      expect(
        await until(
          () => answer().catch(String),
          (text) => text === 'ok\n',
        ),
      ).toBe('ok\n');
      const path = pathOf('Service', namespaceOf(spec.identity), `${spec.hostname}-tcp`);
      await setStatus(path, { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } });
      const second = nextSpec(spec);
      expect((await deploy(second)).lines).toEqual(['TCP 8080 is reached at 203.0.113.7:30500.']);
      await deploy(nextSpec(second, { ports: [{ ...RAW, publiclyAccessible: false }] }));
      await expect(connection.get(path)).rejects.toMatchObject({ status: 404 });
    },
  );
});
