import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { rangeRefusals, type WorkloadPort } from '#runtimes/runtime.ts';
import { cloneOptions, containerOptions, programOptions, reachedPorts, upstreamOf } from './container-config.ts';
import type { Placement } from './container-config.ts';
import { releaseOf, isExclusive } from './release.ts';
import { refusals } from './refusals.ts';

const identity = newIdentity('installation');
const placement: Placement = { instance: 2, attempt: 3, network: 'qd-e', address: '10.201.0.5', published: null };
const image = { id: 'sha256:1', configHash: 'hash', cpus: 2, processes: 1024 };
const port = (changes: Partial<WorkloadPort>): WorkloadPort => {
  return {
    id: 'p',
    name: 'p',
    internalPort: 5432,
    externalPort: 15432,
    protocol: 'TCP',
    publiclyAccessible: true,
    isDefault: false,
    ...changes,
  };
};
const spec = newSpec(identity, 'sha256:1', {
  hostname: 'app-z1',
  environment: { TOKEN: 'very-secret' },
  files: [
    { path: '/plain', content: 'plain' },
    { path: '/key', content: 'very-secret key' },
  ],
  secrets: ['very-secret', 'very-secret key'],
  labels: { team: 'blue', 'quarterdeck.service': 'another' },
});

test('names and labels say whose a container is, and a spec cannot change them', () => {
  const options = containerOptions(spec, image, placement);
  expect(options.name).toBe('app-z1-1-2');
  expect(options.Labels).toMatchObject({
    'quarterdeck.installation': 'installation',
    'quarterdeck.organization': identity.organizationId,
    'quarterdeck.project': identity.projectId,
    'quarterdeck.environment': identity.environmentId,
    'quarterdeck.service': identity.serviceId,
    'quarterdeck.generation': '1',
    team: 'blue',
  });
});

test('labels name secret variables and files, never their values', () => {
  const { Labels: labels } = containerOptions(spec, image, placement);
  expect(labels!['quarterdeck.secrets']).toBe('["TOKEN"]');
  expect(labels!['quarterdeck.secret-files']).toBe('[1]');
  expect(JSON.stringify(labels)).not.toContain('very-secret');
  expect(JSON.stringify(releaseOf(spec, 'sha256:1'))).not.toContain('very-secret');
});

test('limits are what was asked for, CPU at most what the machine has', () => {
  const host = containerOptions(
    { ...spec, resources: { cpuMilli: 4000, memoryMib: 64 } },
    image,
    placement,
  ).HostConfig!;
  expect(host).toMatchObject({ NanoCpus: 2e9, Memory: 64 * 2 ** 20, MemorySwap: 64 * 2 ** 20 });
  expect(host.RestartPolicy).toEqual({ Name: 'unless-stopped' });
});

test('every container has as many processes as the machine allows, and gains no rights; so has the one of a restart', () => {
  const confined = { PidsLimit: 1024, SecurityOpt: ['no-new-privileges'] };
  const options = containerOptions(spec, image, placement);
  expect(options.HostConfig).toMatchObject(confined);
  expect(programOptions(spec, image).HostConfig).toMatchObject(confined);
  const inspected = { Image: image.id, Config: options, HostConfig: options.HostConfig, Mounts: [] };
  const clone = cloneOptions(inspected as unknown as Docker.ContainerInspectInfo, placement, spec.ports, 2);
  expect(clone.HostConfig).toMatchObject(confined);
});

test('a public port outside of the range for published ports is refused with both, and so is one of the platform', () => {
  const range = { from: 80, to: 90, reserved: [81] };
  const refusalsOf = (changes: Partial<WorkloadPort>) => rangeRefusals({ ports: [port(changes)] }, range);
  expect(refusalsOf({ externalPort: 70 })).toEqual([expect.stringContaining('70 must be a port from 80 to 90')]);
  expect(refusalsOf({ externalPort: 81 })).toEqual([expect.stringContaining('81 is a port of the platform itself')]);
  expect(refusalsOf({ externalPort: 80 })).toEqual([]);
  expect(refusalsOf({ externalPort: 70, publiclyAccessible: false })).toEqual([]);
  expect(rangeRefusals({ ports: [port({ externalPort: 70 })] }, null)).toEqual([]);
});

test('only public TCP and UDP ports are published where container addresses can be reached', () => {
  const ports = [
    port({}),
    port({ id: 'u', protocol: 'UDP', internalPort: 53, externalPort: 1053 }),
    port({ id: 'x', internalPort: 6, publiclyAccessible: false }),
    ...spec.ports,
  ];
  const options = containerOptions({ ...spec, ports }, image, placement);
  expect(options.HostConfig!.PortBindings).toEqual({
    '5432/tcp': [{ HostIp: '', HostPort: '15432' }],
    '53/udp': [{ HostIp: '', HostPort: '1053' }],
  });
});

test('elsewhere what the proxy and the probes need is published on loopback only', () => {
  const published = { 8080: { address: '127.0.0.1', port: 40001 } };
  const options = containerOptions(spec, image, { ...placement, published });
  expect(options.HostConfig!.PortBindings).toEqual({ '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '40001' }] });
  expect(upstreamOf(published, 8080)).toEqual({ address: '127.0.0.1', port: 40001 });
  expect(upstreamOf(published, 9)).toBeNull();
  expect(reachedPorts([port({})], [{ ...spec.readiness!, check: { type: 'tcp', port: 9, host: null } }, null])).toEqual(
    [9],
  );
});

test('an empty entry point and empty arguments keep those of the image', () => {
  const kept = containerOptions(spec, image, placement);
  expect(kept).not.toHaveProperty('Entrypoint');
  expect(kept).not.toHaveProperty('Cmd');
  const replaced = containerOptions({ ...spec, entrypoint: ['a b'], arguments: ['c d'] }, image, placement);
  expect(replaced).toMatchObject({ Entrypoint: ['a b'], Cmd: ['c d'] });
});

test('a configuration has the same hash whatever the order of its keys, and another one when anything of it changes', () => {
  const hash = (changes: object) => releaseOf({ ...spec, ...changes }, 'sha256:1').configHash;
  expect(hash({ environment: { A: '1', B: '2' } })).toBe(hash({ environment: { B: '2', A: '1' } }));
  const others = [
    { environment: { A: '1' } },
    { entrypoint: ['x'] },
    { arguments: ['x'] },
    { files: [{ path: '/x', content: 'y' }] },
    { resources: { cpuMilli: 1, memoryMib: 64 } },
    { ports: [] },
    { labels: {} },
    { annotations: [{ scopes: ['PODS'], values: { a: 'b' } }] },
  ];
  expect(new Set([hash({}), ...others.map(hash)]).size).toBe(others.length + 1);
  expect(releaseOf(spec, 'sha256:2').configHash).not.toBe(hash({}));
});

test('what shares storage or a port of the machine cannot run side by side', () => {
  expect(isExclusive({ storage: [], ports: spec.ports })).toBe(false);
  expect(isExclusive({ storage: ['s'], ports: [] })).toBe(true);
  expect(isExclusive({ storage: [], ports: [port({})] })).toBe(true);
  expect(isExclusive({ storage: [], ports: [port({ publiclyAccessible: false })] })).toBe(false);
});

test('what cannot run is refused with what would help', () => {
  expect(refusals(spec)).toEqual([]);
  const two = { instances: { min: 2, max: 2 } };
  expect(refusals({ ...spec, ...two })).toEqual([]);
  expect(refusals({ ...spec, ...two, ports: [port({ name: 'db' })] })).toEqual([
    expect.stringMatching(/db.*15432.*one instance/),
  ]);
  expect(refusals({ ...spec, resources: { cpuMilli: 1, memoryMib: 5 } })).toEqual([expect.stringContaining('6 MiB')]);
  const elsewhere = { ...spec.readiness!, check: { type: 'tcp' as const, port: 1, host: 'db.example' } };
  expect(refusals({ ...spec, liveness: elsewhere })).toEqual([expect.stringContaining('liveness')]);
  for (const path of ['relative', '/', '/a/../..', '/nul\0'])
    expect(refusals({ ...spec, files: [{ path, content: '' }] })).toEqual([expect.stringContaining('mount path')]);
});
