import { expect, test } from 'vitest';
import type { ServiceSnapshot } from '#deployments/index.ts';
import { hostRoutes } from '#services/ports/host-routes.ts';
import type { PortSpec } from '#services/ports/ports.ts';

const port = (id: string, change: Partial<PortSpec> = {}): PortSpec =>
  ({ id, name: id, publicly_accessible: true, protocol: 'HTTP', is_default: false, ...change }) as PortSpec;
const service = {
  hostname: 'app-z1',
  customDomains: ['a.example.com', 'b.example.com'],
  certificateDomains: ['b.example.com'],
} as unknown as ServiceSnapshot;

test('custom domains lead to the default port, with a certificate where they ask for one', () => {
  const ports = [port('admin'), port('web', { is_default: true }), port('db', { protocol: 'TCP' })];
  expect(hostRoutes(service, ports, 'localhost')).toEqual([
    { host: 'admin-app-z1.localhost', portId: 'admin' },
    { host: 'app-z1.localhost', portId: 'web' },
    { host: 'a.example.com', portId: 'web' },
    { host: 'b.example.com', portId: 'web', certificate: true },
  ]);
});

test('custom domains of a service without a public web port lead nowhere', () => {
  expect(hostRoutes(service, [port('db', { protocol: 'TCP' })], 'localhost')).toEqual([]);
});
