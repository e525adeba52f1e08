import { createServer } from 'node:http';
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import type { InstanceObservation } from '#runtimes/runtime.ts';
import { imageTag } from './build.ts';
import { connect } from './connect.ts';
import { findDockerSocket, engineCandidates } from './socket.ts';
import { createDockerRuntime } from './index.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { explainExit, judge, metricsOf } from './observe.ts';
import { ours } from './search.ts';

describe('finding an engine', () => {
  test('DOCKER_HOST stands before the usual places', () => {
    expect(engineCandidates({ DOCKER_HOST: 'unix:///x/docker.sock', HOME: '/h' })).toEqual(['/x/docker.sock']);
    expect(engineCandidates({ DOCKER_HOST: 'tcp://10.0.0.1:2375' })).toEqual(['tcp://10.0.0.1:2375']);
    const usual = engineCandidates({ HOME: '/h', XDG_RUNTIME_DIR: '/run/user/1' });
    expect(usual[0]).toBe('/var/run/docker.sock');
    expect(usual).toEqual(
      expect.arrayContaining([
        '/run/user/1/podman/podman.sock',
        '/h/.docker/run/docker.sock',
        '/run/podman/podman.sock',
      ]),
    );
  });

  test('an engine is taken only if it answers, by socket or by host', async () => {
    const server = createServer((request, response) => response.writeHead(request.url === '/_ping' ? 200 : 404).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `tcp://127.0.0.1:${(server.address() as { port: number }).port}`;
    expect(await findDockerSocket({ DOCKER_HOST: address })).toBe(address);
    await new Promise((resolve) => server.close(resolve));
    for (const nobody of [address, 'unix:///nowhere/docker.sock', 'ssh://somewhere', 'nonsense'])
      expect(await findDockerSocket({ DOCKER_HOST: nobody })).toBeNull();
  });

  test('an address must be one', () => {
    expect(() => connect({})).toThrow(/socketPath/);
    expect(() => connect({ socketPath: '/x', host: 'tcp://x' })).toThrow(/either/);
    expect(() => connect({ host: 'ssh://x' })).toThrow(/tcp:/);
  });

  test('an engine that does not answer is reported, and verbs say so', async () => {
    const options = { installation: 'i', router: new MemoryRouter(), dataDir: '/nowhere', log: () => undefined };
    const runtime = await createDockerRuntime({ ...options, socketPath: '/nowhere/docker.sock' });
    expect(await runtime.check()).toMatchObject({ ok: false, limits: [expect.stringContaining('does not answer')] });
    const handle = { format: 1, runtime: 'docker', identity: { serviceId: 's' } as never, data: {} };
    await expect(runtime.observe(handle)).rejects.toMatchObject({ name: 'RuntimeError', code: 'unreachable' });
    await expect(runtime.observe({ ...handle, format: 99 })).rejects.toMatchObject({ code: 'refused' });
  });
});

test('what lacks one of the labels or the installation’s is not found, whatever the engine answers', () => {
  const label = (installation: string, service: string) => ({
    Labels: { 'quarterdeck.installation': installation, 'quarterdeck.service': service },
  });
  const found = [label('mine', 's'), label('other', 's'), label('mine', 't'), { Labels: null }, {}];
  expect(ours({ installation: 'mine' }, { 'quarterdeck.service': 's' }, found)).toEqual([label('mine', 's')]);
  expect(ours({ installation: 'mine' }, { 'quarterdeck.installation': 'other' }, found)).toHaveLength(2);
});

test('a cache key that cannot be a tag is named by its hash', () => {
  expect(imageTag('s', 'abc-1.2_3')).toBe('quarterdeck/s:abc-1.2_3');
  expect(imageTag('s', 'a/b:c')).toMatch(/^quarterdeck\/s:[0-9a-f]{64}$/);
  expect(imageTag('s', 'x'.repeat(129))).toMatch(/^quarterdeck\/s:[0-9a-f]{64}$/);
});

describe('what is told of a service', () => {
  const seen = (state: InstanceObservation['state'], code?: number): InstanceObservation => {
    const lastExit = code === undefined ? null : { ...explainExit(code, false), at: '2026-01-01T00:00:00.000Z' };
    return { name: 'a-1-1', state, restarts: 0, startedAt: null, lastExit };
  };

  test.each([
    [1, [], 'absent', ''],
    [0, [], 'stopped', ''],
    [1, [seen('ready')], 'running', ''],
    [2, [seen('ready'), seen('restarting', 1)], 'partial', '1 of 2 instances are ready. a-1-1 ended: status 1.'],
    [1, [seen('restarting', 137)], 'failed', '0 of 1 instances are ready. a-1-1 ended: signal SIGKILL.'],
    [1, [seen('running')], 'partial', '0 of 1 instances are ready.'],
    [2, [seen('stopped'), seen('stopped')], 'stopped', ''],
  ] as const)('%i wanted, seen %j: %s', (wanted, instances, state, message) => {
    expect(judge({ wanted }, [...instances])).toEqual({ state, message });
  });

  test('an end for want of memory is told as such', () => {
    expect(explainExit(137, true)).toEqual({ code: 137, signal: null, reason: 'it needed more memory than its limit' });
    expect(explainExit(null, false).reason).toContain('not known');
  });

  test('CPU is counted per time, memory without the cache', () => {
    const stats = {
      read: '2026-01-01T00:00:02.000Z',
      preread: '2026-01-01T00:00:01.000Z',
      cpu_stats: { cpu_usage: { total_usage: 750_000_000 } },
      precpu_stats: { cpu_usage: { total_usage: 500_000_000 } },
      memory_stats: { usage: 1000, stats: { inactive_file: 400 } },
    } as unknown as Docker.ContainerStats;
    expect(metricsOf('a', stats)).toEqual({
      instance: 'a',
      cpuMilli: 250,
      cpuMs: 750,
      memoryBytes: 600,
      at: '2026-01-01T00:00:02.000Z',
    });
  });
});
