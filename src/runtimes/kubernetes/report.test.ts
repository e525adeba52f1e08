import { expect, test } from 'vitest';
import { RECORD_KEY } from './api-server.fixture.ts';
import type { Connection } from './connection.ts';
import { ApiError } from './errors.ts';
import { reportOf } from './report.ts';

interface World {
  apis?: string[];
  objects?: Record<string, object[]>;
  /** Resources that the account has no right to. */
  refused?: string[];
  isMetricsAway?: boolean;
}

/** Cluster whose API server answers from a few lists. */
function clusterWith({ apis = [], objects = {}, refused = [], isMetricsAway = false }: World) {
  const get = async (path: string) => {
    if (path === '/version') return { gitVersion: 'v1.34.1', major: '1', minor: '34' };
    if (path === '/apis') return { groups: [{ versions: apis.map((groupVersion) => ({ groupVersion })) }] };
    if (path.startsWith('/apis/metrics.k8s.io/') && isMetricsAway)
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    if (/^\/apis\/[^/]+\/[^/]+$/.test(path)) return { resources: [{ name: 'grpcroutes' }] };
    return { metadata: {}, items: objects[path.split('/').at(-1)!] ?? [] };
  };
  const call = async (
    _method: string,
    _path: string,
    { body }: { body: { spec: { resourceAttributes: { resource: string; subresource?: string } } } },
  ) => {
    const { resource, subresource } = body.spec.resourceAttributes;
    return { status: { allowed: !refused.includes(subresource ? `${resource}/${subresource}` : resource) } };
  };
  return { connection: { get, call } as unknown as Connection, installation: 'test', recordKey: RECORD_KEY };
}

const named = (name: string, labels: object = {}, annotations: object = {}) => ({
  metadata: { name, namespace: 'edge', labels, annotations },
});
const GATEWAYS = 'gateway.networking.k8s.io/v1';

test('a check names rights to APIs only that the cluster has', async () => {
  const refused = ['httproutes', 'scaledobjects', 'certificates'];
  expect(await reportOf(clusterWith({ refused }))).toMatchObject({ ok: true });
  const { ok, description } = await reportOf(clusterWith({ refused, apis: [GATEWAYS] }));
  expect(ok).toBe(false);
  expect(description).toContain('httproutes.gateway.networking.k8s.io (HTTP from outside through a Gateway)');
  expect(description).not.toMatch(/scaledobjects|certificates\.cert-manager/);
});

test('a cluster whose account may not forward ports is used all the same, and says so', async () => {
  const { ok, limits, missing } = await reportOf(clusterWith({ refused: ['pods/portforward'] }));
  expect([ok, Object.keys(missing ?? {})]).toEqual([true, ['helm', 'keda']]);
  expect(limits[0]).toBe('Ports of services cannot be forwarded. Apply what `quarterdeck cluster rbac` prints.');
});

test.each([
  ['nothing', {}, /No ingress class and no chosen Gateway/],
  [
    'a Gateway that nobody chose',
    { apis: [GATEWAYS], objects: { gateways: [named('a')] } },
    /label one with `quarterdeck\.gateway=true`/,
  ],
  [
    'classes without a default',
    { objects: { ingressclasses: [named('a'), named('b')] } },
    /None of the ingress classes a, b is the default/,
  ],
  ['a metrics API that is away', { apis: ['metrics.k8s.io/v1beta1'], isMetricsAway: true }, /Pods are not measured/],
])('a check tells what would help a cluster with %s', async (_what, world, limit) => {
  expect((await reportOf(clusterWith(world))).limits.join('\n')).toMatch(limit);
});

test('a check finds nothing to tell of a cluster that has all of it', async () => {
  const objects = {
    nodes: [named('node')],
    storageclasses: [named('disk')],
    gateways: [named('public', { 'quarterdeck.gateway': 'true' })],
  };
  const apis = [GATEWAYS, 'metrics.k8s.io/v1beta1', 'keda.sh/v1alpha1'];
  expect(await reportOf(clusterWith({ apis, objects }))).toEqual({
    ok: true,
    description: 'Kubernetes v1.34.1, 1 node',
    limits: [],
    // This cluster is looked at from a machine without helm.
    missing: { helm: expect.stringContaining('Install helm') },
  });
  expect(await reportOf(clusterWith({}))).toMatchObject({ missing: { keda: expect.stringContaining('install it') } });
});
