import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { hostOf, newContext, newIdentity, nextSpec } from '#runtimes/contract/fixture.ts';
import { startTraffic, until } from '#runtimes/contract/setup.ts';
import type { WorkloadPort } from '#runtimes/runtime.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { strideOf } from '#test/harness/random.ts';
import { applySpec } from './apply.ts';
import { listInstances } from './instances.ts';
import { makeNode } from './node.ts';
import type { DockerNode } from './node.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const { socketPath } = inject('docker');
let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

const storage = () => [{ id: crypto.randomUUID(), mountPath: '/data', sizeGib: 1 }];

const nodeWith = (engine: Docker, changes: Partial<DockerNode> = {}): DockerNode => {
  const { installation, router } = bench;
  const parts = {
    installation,
    router,
    pool: '10.201.0.0/16',
    egressImage: NODE_IMAGE,
    publishAddress: '127.0.0.1',
    log: () => undefined,
  };
  return { ...makeNode(engine, { ...parts, supervise: async () => undefined }), ...changes };
};

/** Node that seems to be another machine: there are no routes to the engine's networks. Those of other networks keep subnets apart. */
const distantNode = (engine: Docker): DockerNode => {
  const { hostRoutes } = nodeWith(engine);
  return nodeWith(engine, {
    hostRoutes: async () => {
      const networks = await engine.listNetworks();
      const own = networks.flatMap(({ IPAM: plan }) => (plan?.Config ?? []).map(({ Subnet: subnet }) => subnet));
      return (await hostRoutes()).filter((route) => !own.includes(route));
    },
  });
};

describe('a release that gets ready', () => {
  test('carries the limits that were asked for', async () => {
    const spec = bench.spec({ resources: { cpuMilli: 500, memoryMib: 96 } });
    await bench.apply(spec);
    const [name] = await bench.containers(spec);
    const { HostConfig: host } = await bench.engine.getContainer(name!).inspect();
    expect(host).toMatchObject({ NanoCpus: 500_000_000, Memory: 96 * 2 ** 20 });
  });

  test('is not ready before the ports of its routes are listened on, without any check of its own', async () => {
    const script = `setTimeout(() => require('node:http').createServer((q, s) => s.end('{}')).listen(8080), 1500)`;
    const spec = bench.spec({ arguments: ['node', '-e', script] });
    await bench.apply(spec);
    expect(await bench.ask(spec)).toEqual({});
  });

  test('is not ready before its command succeeds', async () => {
    const check = { type: 'exec' as const, command: ['test', '-e', '/tmp/ready'] };
    const readiness = {
      ...bench.spec().readiness,
      check,
      initialDelaySeconds: 0,
      periodSeconds: 1,
      timeoutSeconds: 2,
      successThreshold: 2,
      failureThreshold: 1,
    };
    const never = bench.spec({ readiness, readyTimeoutSeconds: 6 });
    await expect(bench.apply(never)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('test ended with status 1'),
    });
    const spec = bench.spec({
      readiness,
      arguments: ['sh', '-c', 'sleep 1; touch /tmp/ready; sleep 1000'],
      routes: [],
    });
    const started = Date.now();
    const applied = await bench.apply(spec);
    await expect.poll(() => bench.runtime.observe(applied)).toMatchObject({ state: 'running' });
    expect(Date.now() - started).toBeGreaterThan(2000);
  });

  test('a check that hangs counts as failed after its time', async () => {
    const check = { type: 'exec' as const, command: ['sleep', '60'] };
    const readiness = {
      check,
      initialDelaySeconds: 0,
      periodSeconds: 1,
      timeoutSeconds: 1,
      successThreshold: 1,
      failureThreshold: 1,
    };
    const spec = bench.spec({ readiness, readyTimeoutSeconds: 6 });
    await expect(bench.apply(spec)).rejects.toMatchObject({
      message: expect.stringContaining('sleep did not end within 1 s'),
    });
  });
});

describe('a release that does not get ready', () => {
  test('its error tells the log without secrets', async () => {
    const spec = bench.spec({
      environment: { FAIL: 'hunter2-secret' },
      secrets: ['hunter2-secret'],
      readyTimeoutSeconds: 8,
    });
    const error = await bench.apply(spec).catch((caught: Error) => caught.message);
    expect(error).toContain('it fails: ***');
    expect(error).not.toContain('hunter2');
    expect(await bench.containers(spec)).toEqual([]);
  });

  test('a command that is not there fails at once, by name', async () => {
    const spec = bench.spec({ entrypoint: ['/no/such/program'], readyTimeoutSeconds: 3_600 });
    await expect(bench.apply(spec)).rejects.toMatchObject({
      code: 'not_ready',
      message: expect.stringContaining('/no/such/program'),
    });
  });

  test('with storage the previous release, stopped to make room, runs and serves again', async () => {
    const spec = bench.spec({ storage: storage() });
    const handle = await bench.apply(spec);
    await expect(
      bench.apply(nextSpec(spec, { environment: { FAIL: 'yes' }, readyTimeoutSeconds: 2 })),
    ).rejects.toMatchObject({ code: 'not_ready' });
    expect(
      await until(
        () => bench.runtime.observe(handle),
        ({ state }) => state === 'running',
      ),
    ).toMatchObject({ generation: 1 });
    expect(await bench.ask(spec)).toMatchObject({ release: '1' });
    expect(await bench.containers(spec)).toEqual([`${spec.hostname}-1-1`]);
  });

  test('a service that was stopped stays stopped', async () => {
    const spec = bench.spec({ storage: storage() });
    const handle = await bench.apply(spec);
    await bench.runtime.stop(handle.identity, handle, newContext());
    await expect(
      bench.apply(nextSpec(spec, { environment: { FAIL: 'yes' }, readyTimeoutSeconds: 2 })),
    ).rejects.toMatchObject({ code: 'not_ready' });
    expect(await bench.runtime.observe(handle)).toMatchObject({ state: 'stopped' });
  });
});

describe('published ports', () => {
  const tcp = (externalPort: number): WorkloadPort => {
    return {
      id: 't',
      name: 'tcp',
      internalPort: 9000,
      externalPort,
      protocol: 'TCP',
      publiclyAccessible: true,
      isDefault: false,
    };
  };
  const port = 20_000 + (process.pid % 10_000);

  test('TCP is reached on the machine, also after a redeploy', async () => {
    const spec = bench.spec({ ports: [tcp(port)], routes: [], environment: { PORT: '9000' } });
    await bench.apply(spec);
    const reached = () =>
      fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }).then((answer) => answer.json(), String);
    expect(await until(reached, (answer) => typeof answer === 'object')).toMatchObject({ release: '1' });
    await bench.apply(nextSpec(spec));
    expect(await until(reached, (answer) => typeof answer === 'object')).toMatchObject({ release: '2' });
    await bench.runtime.remove(spec.identity, null, newContext());
  });

  test('one that another service has is an error that names it', async () => {
    const holder = bench.spec({
      ports: [tcp(port)],
      routes: [],
      environment: { PORT: '9000' },
      displayName: 'the holder',
    });
    await bench.apply(holder);
    const other = bench.spec({ ports: [tcp(port)], routes: [], environment: { PORT: '9000' } });
    await expect(bench.apply(other)).rejects.toMatchObject({
      code: 'failed',
      message: expect.stringMatching(new RegExp(`${port}.*the holder`)),
    });
    expect(await bench.containers(other)).toEqual([]);
    await bench.runtime.remove(holder.identity, null, newContext());
  });

  test('where container addresses cannot be reached the proxy and checks go through loopback, through a restart of the process, too', async () => {
    const spec = bench.spec();
    const node = distantNode(bench.engine);
    await applySpec(node, spec, newContext());
    const [upstream] = bench.router.upstreams(hostOf(spec.identity));
    expect(upstream!.address).toBe('127.0.0.1');
    const before = await bench.ask(spec);
    await bench.engine.getContainer(`${spec.hostname}-1-1`).restart({ t: 1 });
    const after = await until(
      () => bench.ask(spec).catch(String),
      (answer) => typeof answer === 'object',
    );
    expect(after).not.toEqual(before);
    const stop = startTraffic(() => bench.router.get(hostOf(spec.identity), '/'));
    await applySpec(node, nextSpec(spec), newContext());
    expect((await stop()).failures).toEqual([]);
    expect(await bench.ask(spec)).toMatchObject({ release: '2' });
  });

  test('where container addresses cannot be reached an instance is ready no sooner than its program listens', async () => {
    const late = `setTimeout(() => require('node:http').createServer((_, answer) => answer.end('{}')).listen(8080), 2000)`;
    const spec = bench.spec({ arguments: ['node', '-e', late] });
    await applySpec(distantNode(bench.engine), spec, newContext());
    expect(await bench.ask(spec)).toEqual({});
  });
});

describe('what is not ours', () => {
  test('stays as it is, even with the labels of the same service in another installation', async () => {
    const spec = bench.spec();
    const labels = {
      'quarterdeck.service': spec.identity.serviceId,
      'quarterdeck.environment': spec.identity.environmentId,
    };
    const foreign = {
      ...labels,
      'quarterdeck.installation': newIdentity('x').serviceId,
      'quarterdeck.instance': '1',
      'quarterdeck.generation': '9',
    };
    const name = (kind: string) => `foreign-${kind}-${process.pid}`;
    const network = await bench.engine.createNetwork({ Name: name('network'), Labels: foreign });
    await bench.engine.createVolume({ Name: name('volume'), Labels: foreign });
    const containers = await Promise.all(
      [foreign, {}].map(async (Labels, index) => {
        const container = await bench.engine.createContainer({
          name: name(`c${index}`),
          Image: NODE_IMAGE,
          Cmd: ['sleep', '1000'],
          Labels,
          HostConfig: { NetworkMode: name('network') },
        });
        await container.start();
        return container;
      }),
    );
    const image = `quarterdeck/${spec.identity.serviceId}:foreign`;
    await bench.engine.getImage(NODE_IMAGE).tag({ repo: `quarterdeck/${spec.identity.serviceId}`, tag: 'foreign' });
    try {
      await bench.runtime.stop(spec.identity, await bench.apply(nextSpec(await applied(spec))), newContext());
      await bench.runtime.remove(spec.identity, null, newContext());
      await bench.runtime.removeImages!(spec.identity, 'all');
      await bench.runtime.removeEnvironment!(spec.identity);
      for (const container of containers) expect((await container.inspect()).State.Running).toBe(true);
      await network.inspect();
      await bench.engine.getVolume(name('volume')).inspect();
      await bench.engine.getImage(image).inspect();
    } finally {
      for (const container of containers) await container.remove({ force: true });
      await network.remove();
      await bench.engine.getVolume(name('volume')).remove();
      await bench.engine.getImage(image).remove();
    }
  });

  const applied = async (spec: Parameters<DockerBench['apply']>[0]) => {
    await bench.apply(spec);
    return spec;
  };

  test('a volume or network of our name without our label is refused', async () => {
    const spec = bench.spec({ storage: storage() });
    const volume = `qd-${spec.storage[0]!.id}`;
    await bench.engine.createVolume({ Name: volume });
    await expect(bench.apply(spec)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining(volume),
    });
    await bench.runtime.remove(spec.identity, null, newContext());
    await bench.engine.getVolume(volume).remove();
    const other = bench.spec();
    const network = await bench.engine.createNetwork({ Name: `qd-${other.identity.environmentId}` });
    await expect(bench.apply(other)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('not ours'),
    });
    await network.remove();
  });
});

describe('networks', () => {
  test('each environment has its own from our pool, beside those that others took from it', async () => {
    const taken = await bench.engine.createNetwork({
      Name: `taken-${process.pid}`,
      IPAM: { Config: [{ Subnet: '10.201.255.0/26' }] },
    });
    const pooled = await openBench(socketPath, { addressPool: '10.201.255.0/24' });
    try {
      const specs = [pooled.spec(), pooled.spec()];
      await Promise.all(specs.map((spec) => pooled.apply(spec)));
      const networks = await Promise.all(
        specs.map((spec) => pooled.engine.getNetwork(`qd-${spec.identity.environmentId}`).inspect()),
      );
      const subnets = networks.map((network) => network.IPAM!.Config![0]!.Subnet!).toSorted();
      expect(subnets).toEqual(['10.201.255.128/26', '10.201.255.64/26']);
    } finally {
      await pooled[Symbol.asyncDispose]();
      await taken.remove();
    }
  });

  test('services of one environment that start at once get addresses of their own', async () => {
    const first = bench.spec();
    const identities = [1, 2, 3].map(() => ({
      ...newIdentity(bench.installation),
      environmentId: first.identity.environmentId,
    }));
    const specs = [
      first,
      ...identities.map((identity) =>
        bench.spec({
          ...bench.spec(),
          identity,
          hostname: `app-z${identity.serviceId.slice(0, 8)}`,
          routes: [{ host: hostOf(identity), portId: 'web' }],
        }),
      ),
    ];
    await Promise.all(specs.map((spec) => bench.apply(spec)));
    const upstreams = specs.flatMap((spec) => bench.router.upstreams(hostOf(spec.identity)));
    expect(new Set(upstreams.map((upstream) => upstream.address)).size).toBe(4);
  });
});

describe('a process that dies in the midst', () => {
  /** Engine whose process is gone from the n-th change on: no later call answers, not even one of a clean-up. */
  const dyingEngine = (changesLeft: number): { engine: Docker; died: () => boolean } => {
    const engine = new Docker({ socketPath });
    const dial = engine.modem.dial.bind(engine.modem);
    let left = changesLeft;
    engine.modem.dial = (options, callback) => {
      const method = (options as { method: string }).method;
      if (left > 0 && (method === 'GET' || --left > 0)) dial(options, callback);
      else setImmediate(() => callback!(new Error('the process died'), null));
    };
    return { engine, died: () => left === 0 };
  };

  test.each([
    ['side by side', () => ({})],
    ['with storage', () => ({ storage: storage(), files: [{ path: '/etc/own/file', content: 'x' }] })],
  ])(
    'at whatever change: the next call goes on to the one right end (%s)',
    async (_name, changes) => {
      const spec = bench.spec({ ...changes(), instances: { min: 2, max: 2 }, gracePeriodSeconds: 1 });
      await bench.apply(spec);
      let release = spec;
      const { first, step, seed } = strideOf(2);
      for (let change = first; ; change += step) {
        release = nextSpec(release);
        const { engine, died } = dyingEngine(change);
        const crashed = await applySpec(nodeWith(engine), release, newContext()).then(
          () => null,
          (error: Error) => error,
        );
        if (!died()) {
          expect(crashed).toBeNull();
          break;
        }
        const handle = await bench.apply(release);
        const generation = release.identity.generation;
        await expect
          .poll(() => bench.runtime.observe(handle))
          .toMatchObject({ state: 'running', generation, message: '' });
        expect(await bench.ask(spec)).toMatchObject({ release: String(generation) });
        const left = await listInstances(nodeWith(bench.engine), spec.identity);
        expect(left.map((one) => [one.generation, one.named, one.state.Running])).toEqual([
          [generation, true, true],
          [generation, true, true],
        ]);
        expect(change, `SEED=${seed}`).toBeLessThan(60);
      }
    },
    300_000,
  );
});

test('what is published outside of the range of the operator is refused before anything is made', async () => {
  const range = { from: 20_000, to: 20_010, reserved: [] };
  await using other = await openBench(inject('docker').socketPath, { publishedPorts: range });
  const [web] = other.spec().ports;
  const spec = other.spec({
    ports: [{ ...web!, protocol: 'TCP', externalPort: 30_000, publiclyAccessible: true }],
    routes: [],
  });
  await expect(other.apply(spec)).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining('30000 must be a port from 20000 to 20010'),
  });
  expect(await other.containers(spec)).toEqual([]);
});
