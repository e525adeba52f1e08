import Docker from 'dockerode';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { newContext, nextSpec } from '#runtimes/contract/fixture.ts';
import { until } from '#runtimes/contract/setup.ts';
import type { Attempt, RuntimeContext, WorkloadSpec } from '#runtimes/runtime.ts';
import { startRelay } from '#test/crash/harness/postgres.ts';
import { NODE_IMAGE } from '#test/harness/docker-images.ts';
import { applySpec, restartRelease } from './apply.ts';
import { listInstances } from './instances.ts';
import { makeNode } from './node.ts';
import type { DockerNode } from './node.ts';
import { limitCalls } from './time-limits.ts';
import { openBench } from './testing.ts';
import type { DockerBench } from './testing.ts';

const { socketPath } = inject('docker');
let bench: DockerBench;
beforeAll(async () => {
  bench = await openBench(socketPath);
});
afterAll(() => bench[Symbol.asyncDispose]());

/** Server that waits `SLOW_MS` before it listens and takes 4 s to end. */
const UNHURRIED = `
process.on('SIGTERM', () => setTimeout(() => process.exit(0), 4000));
setTimeout(() => require('node:http').createServer((q, s) => s.end('{}')).listen(8080), Number(process.env.SLOW_MS ?? 0));
`;
const unhurried = (changes: Partial<WorkloadSpec> = {}): WorkloadSpec =>
  bench.spec({
    arguments: ['node', '-e', UNHURRIED],
    storage: [{ id: crypto.randomUUID(), mountPath: '/data', sizeGib: 1 }],
    gracePeriodSeconds: 10,
    readyTimeoutSeconds: 30,
    ...changes,
  });

/** Node of another process of the control plane: nothing but the engine is shared. */
const otherProcess = (engine = new Docker({ socketPath })): DockerNode => {
  const { installation, router } = bench;
  const parts = { installation, router, pool: '10.201.0.0/16', egressImage: NODE_IMAGE, publishAddress: '127.0.0.1' };
  return makeNode(engine, { ...parts, log: () => undefined, supervise: async () => undefined });
};

/** Context of an attempt; `lose` revokes its claim. */
function attempt(number: number): RuntimeContext & { lose(): void } {
  const abort = new AbortController();
  const held: Attempt = { number, holds: () => !abort.signal.aborted };
  return { ...newContext(abort.signal), attempt: held, lose: () => abort.abort('lost') };
}

/** Counts the containers of a service that run at the same time, until stopped; returns the highest count. */
function watchRunning(spec: WorkloadSpec): () => Promise<number> {
  const filters = { label: [`quarterdeck.service=${spec.identity.serviceId}`], status: ['running'] };
  let most = 0;
  let looking = true;
  const all = (async () => {
    while (looking) most = Math.max(most, (await bench.engine.listContainers({ filters })).length);
  })();
  return async () => {
    looking = false;
    await all;
    return most;
  };
}

const running = async (spec: WorkloadSpec): Promise<string[]> =>
  (await listInstances(otherProcess(), spec.identity)).filter((one) => one.state.Running).map((one) => one.name);

test('two instances never run on one volume, although the process was killed while the old one ended', async () => {
  const spec = unhurried();
  await bench.apply(spec);
  const release = nextSpec(spec);
  const engine = new Docker({ socketPath });
  const dial = engine.modem.dial.bind(engine.modem);
  let died = false;
  // The engine gets the request to stop the old instance; the process dies before the answer.
  engine.modem.dial = (options, callback) => {
    const { path, method } = options as { path: string; method: string };
    if (died) return setImmediate(() => callback!(new Error('the process died'), null));
    dial(options, callback);
    if (method === 'POST' && path.includes('/stop?')) died = true;
  };
  const crashed = applySpec(otherProcess(engine), release, attempt(1)).catch((error: Error) => error);
  await until(
    async () => died,
    (isDead) => isDead,
  );
  const most = watchRunning(spec);
  await applySpec(otherProcess(), release, attempt(2));
  expect(await most()).toBe(1);
  await crashed;
  expect(await running(spec)).toEqual([expect.stringMatching(`^${spec.hostname}-2-`)]);
  expect(await bench.containers(spec)).toHaveLength(1);
});

test.each(['that hears of it later', 'that never hears of it'])(
  'an attempt %s removes nothing of the one that took over, and starts nothing beside it',
  async (which) => {
    const spec = unhurried();
    await bench.apply(spec);
    const release = nextSpec(spec, { environment: { SLOW_MS: '3000' } });
    const first = attempt(1);
    const lost = applySpec(otherProcess(), release, first).catch((error: Error) => error);
    await until(
      () => running(spec),
      (names) => names.some((name) => name.startsWith(`${spec.hostname}-2-`)),
    );
    const most = watchRunning(spec);
    const taken = applySpec(otherProcess(), release, attempt(2));
    await until(
      () => bench.containers(spec),
      (names) => names.length === 3,
    );
    if (which === 'that hears of it later') first.lose();
    await taken;
    expect(await lost).toBeInstanceOf(Error);
    expect(await most()).toBe(1);
    expect(await running(spec)).toHaveLength(1);
    expect(await bench.containers(spec)).toEqual(await running(spec));
  },
);

test('an attempt that comes after a later one has begun is refused and changes nothing', async () => {
  const spec = bench.spec();
  await applySpec(otherProcess(), spec, attempt(2));
  const before = await running(spec);
  await expect(
    applySpec(otherProcess(), { ...spec, environment: { ...spec.environment, OTHER: 'x' } }, attempt(1)),
  ).rejects.toMatchObject({ code: 'superseded', message: expect.stringContaining('attempt 1 came too late') });
  expect(await bench.containers(spec)).toEqual(before);
});

test('a restart that comes after a later one is refused and changes nothing; one beside all deployments holds none of them back', async () => {
  const spec = bench.spec();
  const handle = await applySpec(otherProcess(), spec, attempt(1));
  await restartRelease(otherProcess(), handle, 3, attempt(1));
  const before = await running(spec);
  await expect(restartRelease(otherProcess(), handle, 2, attempt(1))).rejects.toMatchObject({ code: 'superseded' });
  expect(await bench.containers(spec)).toEqual(before);
  await restartRelease(otherProcess(), handle, 1_800_000_000_000, newContext());
  await restartRelease(otherProcess(), handle, 4, attempt(1));
  expect((await listInstances(otherProcess(), spec.identity)).map(({ asked }) => asked)).toEqual([4]);
});

test('a removal whose claim is lost while it waits ends and removes nothing', async () => {
  const spec = bench.spec();
  const handle = await bench.apply(spec);
  const one = attempt(1);
  const { router } = bench;
  const remove = router.remove.bind(router);
  router.remove = (serviceId) => remove(serviceId).finally(() => one.lose());
  try {
    await expect(bench.runtime.remove(spec.identity, handle, one)).rejects.toMatchObject({ code: 'aborted' });
  } finally {
    router.remove = remove;
  }
  expect(await running(spec)).toEqual(await bench.containers(spec));
});

test('calls for one service wait for each other, also those of a deployment whose call hung', async () => {
  const spec = bench.spec();
  const order: string[] = [];
  const applied = bench.runtime.submit(spec, newContext()).then(() => order.push('applied'));
  const removed = bench.runtime.remove(spec.identity, null, newContext()).then(() => order.push('removed'));
  await Promise.all([applied, removed]);
  expect(order).toEqual(['applied', 'removed']);
  expect(await bench.containers(spec)).toEqual([]);
});

test('an engine that stops answering in the middle of a rollout ends it in time, and a lost attempt leaves all to its successor', async () => {
  const spec = unhurried();
  await bench.apply(spec);
  const release = nextSpec(spec, { environment: { SLOW_MS: '2000' } });
  const relay = await startRelay(socketPath);
  try {
    const engine = limitCalls(new Docker({ host: '127.0.0.1', port: relay.port }), () => 8);
    const first = attempt(1);
    const applied = applySpec(otherProcess(engine), release, first).catch((error: Error) => error);
    await until(
      () => running(spec),
      (names) => names.some((name) => name.startsWith(`${spec.hostname}-2-`)),
    );
    await relay.set('silent');
    first.lose();
    expect(await applied).toBeInstanceOf(Error);
    expect(await running(spec)).toHaveLength(1);
    await relay.set('open');
    await applySpec(otherProcess(), release, attempt(2));
    expect(await running(spec)).toEqual([expect.stringMatching(`^${spec.hostname}-2-`)]);
    expect(await bench.containers(spec)).toHaveLength(1);
  } finally {
    await relay.close();
  }
});
