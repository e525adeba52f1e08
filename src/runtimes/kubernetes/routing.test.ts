import { describe, expect, test } from 'vitest';
import { hostOf, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { BARE, type Extensions } from './extensions.ts';
import { releaseOf } from './objects.ts';
import { certificateName, routesOf, webRoutesOf, whyHostsUnsecured } from './routing.ts';

const gateway = { namespace: 'edge', name: 'public' };
const WITH_GATEWAY: Extensions = { ...BARE, gateways: [gateway], hasGrpcRoutes: true, hasListenerSets: true };
const spec = (changes: Partial<WorkloadSpec> = {}) => newSpec(newIdentity('test'), 'shop:1', changes);
const made = (from: WorkloadSpec, extensions: Extensions, kind: string) =>
  routesOf(from, extensions).filter((one) => one.kind === kind);
const domains = (count: number, certificate: boolean) =>
  Array.from({ length: count }, (_, n) => ({ host: `d${n}.example.com`, portId: 'web', certificate }));

test('an Ingress names a class only where the operator chose one', () => {
  expect(made(spec(), BARE, 'Ingress')[0]!['spec']).not.toHaveProperty('ingressClassName');
  const [named] = made(spec(), { ...BARE, ingressClass: 'nginx' }, 'Ingress');
  expect(named!['spec']).toMatchObject({ ingressClassName: 'nginx' });
});

describe('routes of a Gateway', () => {
  test('take the place of the Ingress, with at most 16 hosts each', () => {
    const many = spec({ routes: domains(20, false) });
    expect(made(many, WITH_GATEWAY, 'Ingress')).toEqual([]);
    const routes = made(many, WITH_GATEWAY, 'HTTPRoute');
    expect(routes.map(({ metadata }) => metadata.name)).toEqual([`${many.hostname}-8080`, `${many.hostname}-8080-1`]);
    expect(routes.map((one) => (one['spec'] as { hostnames: string[] }).hostnames.length)).toEqual([16, 4]);
  });

  test('are of HTTP for gRPC ports where the cluster has no routes of gRPC', () => {
    const grpc = spec({ ports: spec().ports.map((port) => ({ ...port, protocol: 'GRPC' })) });
    expect(made(grpc, WITH_GATEWAY, 'GRPCRoute')).toHaveLength(1);
    expect(made(grpc, { ...WITH_GATEWAY, hasGrpcRoutes: false }, 'HTTPRoute')).toHaveLength(1);
  });

  test('end a request after the time that the service says', () => {
    const [route] = made(spec({ requestSeconds: 30 }), WITH_GATEWAY, 'HTTPRoute');
    expect(route!['spec']).toMatchObject({ rules: [{ timeouts: { request: '30s' } }] });
  });

  test('are attached to each chosen Gateway', () => {
    const other = { namespace: 'edge', name: 'internal' };
    const [route] = made(spec(), { ...WITH_GATEWAY, gateways: [other, gateway] }, 'HTTPRoute');
    expect(route!['spec']).toMatchObject({ parentRefs: [other, gateway] });
  });
});

describe('the ports of a chart', () => {
  const identity = newIdentity('test');
  const ports = ['web', 'admin'].map((id) => ({ id, internalPort: 80, protocol: 'HTTP' as const }));
  const routes = ports.map(({ id }) => ({ host: `${id}.example.com`, portId: id, certificate: id === 'web' }));
  const services = new Map(ports.map(({ id }) => [id, `shop-${id}`]));
  const chart = { identity, hostname: 'shop', ports, routes, services };

  test('are reached through the chosen Gateways, each by a route to its Kubernetes service', () => {
    const found = webRoutesOf(chart, { ...WITH_GATEWAY, issuer: 'authority' });
    const web = found.filter(({ kind }) => kind === 'HTTPRoute');
    expect(web.map((one) => (one['spec'] as { rules: unknown[] }).rules)).toEqual([
      [{ backendRefs: [{ name: 'shop-web', port: 80 }] }],
      [{ backendRefs: [{ name: 'shop-admin', port: 80 }] }],
    ]);
    expect(new Set(web.map(({ metadata }) => metadata.name)).size).toBe(2);
    expect(found.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['Certificate', 'ListenerSet']));
  });

  test('are reached by an Ingress of the chosen class elsewhere', () => {
    const [ingress, ...others] = webRoutesOf(chart, { ...BARE, ingressClass: 'nginx' });
    expect(others).toEqual([]);
    expect(ingress!['spec']).toMatchObject({ ingressClassName: 'nginx', rules: [{ host: 'web.example.com' }, {}] });
  });
});

describe('a certificate', () => {
  const wanted = (): WorkloadSpec => {
    const from = spec();
    return { ...from, routes: [{ host: hostOf(from.identity), portId: 'web' }, ...domains(1, true)] };
  };

  test('is for custom domains that ask for one, and its Secret goes when it goes', () => {
    const from = wanted();
    const objects = routesOf(from, { ...BARE, issuer: 'authority' });
    const name = certificateName(from.hostname, 'd0.example.com');
    expect(objects.find(({ kind }) => kind === 'Ingress')!['spec']).toMatchObject({
      tls: [{ hosts: ['d0.example.com'], secretName: name }],
    });
    expect(objects.filter(({ kind }) => kind === 'Certificate').map((one) => one['spec'])).toMatchObject([
      { secretName: name, dnsNames: ['d0.example.com'], issuerRef: { name: 'authority' } },
    ]);
    expect(releaseOf(from, objects).objects).toContain(`Secret/${name}`);
  });

  test('is proven by pods of cert-manager, which are reached from everywhere', () => {
    const policies = made(wanted(), { ...BARE, issuer: 'authority' }, 'NetworkPolicy').map((one) => one['spec']);
    expect(policies).toContainEqual(
      expect.objectContaining({ podSelector: { matchLabels: { 'acme.cert-manager.io/http01-solver': 'true' } } }),
    );
  });

  test.each([
    ['an issuer', BARE, /label a ClusterIssuer/],
    ['listeners of its own', { ...WITH_GATEWAY, issuer: 'authority', hasListenerSets: false }, /needs ListenerSets/],
  ])('is not made without %s, which the log tells', (_what, extensions, why) => {
    expect(made(wanted(), extensions, 'Certificate')).toEqual([]);
    expect(whyHostsUnsecured(wanted(), extensions)).toMatch(why);
    expect(whyHostsUnsecured(spec(), extensions)).toBeNull();
  });
});

test('public TCP and UDP ports have a load balancer for each protocol, and the policy lets them in', () => {
  const port = {
    id: 'a',
    name: 'a',
    internalPort: 5432,
    externalPort: 30_001,
    publiclyAccessible: true,
    isDefault: false,
  };
  const from = spec({
    routes: [],
    ports: [
      { ...port, protocol: 'TCP' },
      { ...port, protocol: 'UDP', internalPort: 53 },
      { ...port, protocol: 'TCP', internalPort: 1, publiclyAccessible: false },
    ],
  });
  const services = made(from, BARE, 'Service').map((one) => one['spec']);
  expect(services).toMatchObject([
    { type: 'LoadBalancer', ports: [{ port: 30_001, targetPort: 'p5432-tcp', protocol: 'TCP' }] },
    { type: 'LoadBalancer', ports: [{ port: 30_001, targetPort: 'p53-udp', protocol: 'UDP' }] },
  ]);
  expect(made(from, BARE, 'NetworkPolicy').map((one) => one['spec'])).toMatchObject([
    {
      ingress: [
        {
          ports: [
            { port: 5432, protocol: 'TCP' },
            { port: 53, protocol: 'UDP' },
          ],
        },
      ],
    },
  ]);
});
