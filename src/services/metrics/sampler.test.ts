import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { MetricSampler, METRIC_TASKS } from '#services/metrics/index.ts';
import type { SamplerParts } from '#services/metrics/sampler.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import type { RequestCounts } from '#runtimes/router.ts';
import {
  RuntimeError,
  type GatewayRequests,
  type Handle,
  type InstanceMetrics,
  type Runtime,
} from '#runtimes/runtime.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
const engine = useEngine(app);

beforeEach(async () => {
  await app.db.deleteFrom('service_metric').execute();
  await app.db.deleteFrom('service_requests').execute();
});

/** Makes an organization with a deployed application. */
async function deployed() {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=30`), 200);
  return { admin, id: application.id as string, clusterId: environment.cluster_id as string };
}

/** Makes a sampler of clusters, whose runtimes are the given ones or that of the engine. */
function samplerOf(
  clusterIds: string[],
  runtimes: Record<string, Partial<Runtime>> = {},
  more: Partial<SamplerParts> = {},
) {
  const sampler = new MetricSampler({
    platform: app.platform,
    nodeId: newId(),
    listClusters: async () => clusterIds.map((id) => ({ id, runtime: 'fake' })),
    runtimes: {
      router: async () => NO_ROUTER,
      runtimeOf: async ({ id }) =>
        ({
          name: 'fake',
          observe: (handle) => engine.runtime.observe(handle),
          metrics: (handle) => engine.runtime.metrics!(handle),
          ...runtimes[id!],
        }) as Runtime,
    },
    ...more,
  });
  onTestFinished(() => sampler.stop());
  return sampler;
}

const rowsOf = (id: string) =>
  app.db.selectFrom('service_metric').selectAll().where('service_id', '=', id).orderBy('resolution').orderBy('at').execute(); // prettier-ignore
/** Returns what the hours of a service have together. An hour may end between two looks. */
async function samplesOf(id: string) {
  const hours = (await rowsOf(id)).filter(({ resolution }) => resolution === 3600);
  return hours.slice(-1).map((last) => ({ ...last, samples: hours.reduce((sum, { samples }) => sum + samples, 0) }));
}

test('a look adds what a deployed service takes to its minute, its ten minutes and its hour', async () => {
  const { id, clusterId } = await deployed();
  const { resources } = engine.runtime.specOf(id)!;
  const sampler = samplerOf([clusterId]);
  await sampler.look();
  await sampler.look();
  const rows = await rowsOf(id);
  for (const resolution of [60, 600, 3600]) {
    const own = rows.filter((row) => row.resolution === resolution);
    // A minute may end between the two looks.
    expect(own.reduce((sum, { samples }) => sum + samples, 0)).toBe(2);
    expect(own[0]).toMatchObject({
      instances: 1,
      restarts: 0,
      cpu_milli_max: resources.cpuMilli / 10,
      cpu_milli_limit: resources.cpuMilli,
      memory_bytes_max: resources.memoryMib * 2 ** 19,
      memory_bytes_limit: resources.memoryMib * 2 ** 20,
    });
    for (const { at } of own) expect(at.getTime() % (resolution * 1000)).toBe(0);
    expect(own.reduce((sum, row) => sum + row.cpu_milli_sum, 0)).toBe((2 * resources.cpuMilli) / 10);
  }
});

test('a service that is stopped or was never deployed is not measured', async () => {
  const { admin, id, clusterId } = await deployed();
  const { application } = await makeExample(admin);
  ok(await admin.post(`/application/${id}/stop?wait=30`), 200);
  await samplerOf([clusterId]).look();
  expect([await rowsOf(id), await rowsOf(application.id)]).toEqual([[], []]);
});

test('where instances cannot be measured, they and their restarts are counted all the same', async () => {
  const { id, clusterId } = await deployed();
  const refuse = () => Promise.reject(new RuntimeError('refused', 'no metrics-server'));
  const warn = vi.spyOn(app.platform.log, 'warn');
  onTestFinished(() => warn.mockRestore());
  await samplerOf([clusterId], { [clusterId]: { metrics: refuse } }).look();
  expect(await samplesOf(id)).toMatchObject([{ instances: 1, restarts: 0, samples: 0, cpu_milli_max: 0 }]);
  expect(warn).not.toHaveBeenCalled();
});

test('a service that cannot be measured keeps no other one from it, and is told', async () => {
  const [broken, sound] = [await deployed(), await deployed()];
  const warn = vi.spyOn(app.platform.log, 'warn');
  onTestFinished(() => warn.mockRestore());
  const fail = () => Promise.reject(new RuntimeError('unreachable', 'the engine is away'));
  await samplerOf([broken.clusterId, sound.clusterId], { [broken.clusterId]: { metrics: fail } }).look();
  expect(await samplesOf(broken.id)).toEqual([]);
  expect(await samplesOf(sound.id)).toHaveLength(1);
  const told = {
    clusterId: broken.clusterId,
    services: 1,
    err: expect.objectContaining({ message: 'the engine is away' }),
  };
  expect(warn).toHaveBeenCalledExactlyOnceWith(told, 'cannot measure services');
});

test('a cluster that does not answer holds up no other one, and is asked again only once it has answered', async () => {
  const [silent, sound] = [await deployed(), await deployed()];
  const { promise: answer, resolve } = Promise.withResolvers<InstanceMetrics[]>();
  let asked = 0;
  const metrics = () => (asked++, answer);
  const clusters = [silent.clusterId, sound.clusterId];
  const sampler = samplerOf(clusters, { [silent.clusterId]: { metrics } }, { answerSeconds: 2 });
  await sampler.look();
  await sampler.look();
  expect(asked).toBe(1);
  expect([await samplesOf(silent.id), await samplesOf(sound.id)]).toMatchObject([[], [{ samples: 2 }]]);
  resolve([]);
  await sampler.look();
  await sampler.look();
  expect(await samplesOf(silent.id)).toMatchObject([{ instances: 1, samples: 0 }]);
});

test('a stop does not wait for a cluster that does not answer', async () => {
  const { clusterId } = await deployed();
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
  const metrics = () => (ask(), new Promise<InstanceMetrics[]>(() => undefined));
  const sampler = samplerOf([clusterId], { [clusterId]: { metrics } });
  void sampler.look();
  await isAsked;
  await sampler.stop();
});

test('what a service has taken goes with it, and what is deleted meanwhile is left out', async () => {
  const { admin, id, clusterId } = await deployed();
  await samplerOf([clusterId]).look();
  const metrics = async () => {
    await app.db.deleteFrom('service').where('id', '=', id).execute();
    return [];
  };
  await samplerOf([clusterId], { [clusterId]: { metrics } }).look();
  expect(await rowsOf(id)).toEqual([]);
  expect((await admin.get(`/application/${id}`)).status).toBe(404);
});

test('intervals are kept for hours, days or a month by their length', async () => {
  const { admin, id } = await deployed();
  const ages = [
    [60, 2.9],
    [60, 3.1],
    [600, 71],
    [600, 73],
    [3600, 719],
    [3600, 721],
  ] as const;
  for (const [resolution, hours] of ages)
    await sql`insert into service_metric values (${admin.organizationId}, ${id}, ${resolution}, now() - make_interval(secs => ${hours * 3600}), 1, 0, 0, 0, 0, 0, 0, 0, 0)`.execute(
      app.db,
    );
  await METRIC_TASKS[0]!.run(app.platform, new AbortController().signal);
  const kept = (await rowsOf(id)).map(({ resolution, at }) => [resolution, (Date.now() - at.getTime()) / 3_600_000]);
  expect(kept).toEqual([
    [60, expect.closeTo(2.9, 1)],
    [600, expect.closeTo(71, 1)],
    [3600, expect.closeTo(719, 1)],
  ]);
});

describe('the requests that the proxy has answered', () => {
  /** Makes a sampler of no cluster, whose proxy answers the given counts one after the other. */
  const countingSampler = (...counts: (RequestCounts | null | Error)[]) =>
    samplerOf(
      [],
      {},
      {
        runtimes: {
          runtimeOf: () => Promise.reject(new Error('there is no cluster')),
          router: async () => ({
            ...NO_ROUTER,
            requests: async () => {
              const next = counts.shift() ?? null;
              if (next instanceof Error) throw next;
              return next;
            },
          }),
        },
      },
    );
  const countsOf = (...ids: string[]): RequestCounts => ({
    seconds: 60,
    services: ids.map((serviceId) => ({
      serviceId,
      statuses: [0, 4, 1, 0, 1],
      latencies: [2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    })),
  });
  const stored = () => app.db.selectFrom('service_requests').selectAll().orderBy('resolution').orderBy('at').execute();

  test('are added to the minute, the ten minutes and the hour', async () => {
    const { id } = await deployed();
    const sampler = countingSampler(null, countsOf(id), countsOf(id));
    await sampler.look();
    expect(await stored()).toEqual([]);
    await sampler.look();
    await sampler.look();
    const hours = (await stored()).filter(({ resolution }) => resolution === 3600);
    const sum = (valueOf: (row: (typeof hours)[number]) => number) =>
      hours.reduce((total, row) => total + valueOf(row), 0);
    expect(sum(({ seconds }) => seconds)).toBe(120);
    expect(sum(({ statuses }) => Number(statuses[1]))).toBe(8);
    expect(sum(({ statuses }) => Number(statuses[4]))).toBe(2);
    expect(sum(({ latencies }) => Number(latencies[2]))).toBe(6);
    expect(sum(({ latencies }) => Number(latencies[12]))).toBe(2);
    expect(new Set((await stored()).map(({ resolution }) => resolution))).toEqual(new Set([60, 600, 3600]));
  });

  test('of a service that is deleted meanwhile are left out', async () => {
    const { id } = await deployed();
    await countingSampler(countsOf(newId(), id)).look();
    expect(new Set((await stored()).map((row) => row.service_id))).toEqual(new Set([id]));
  });

  test('are counted on after a proxy that did not answer', async () => {
    const { id } = await deployed();
    const sampler = countingSampler(new RuntimeError('failed', 'The proxy does not answer.'), countsOf(id));
    await sampler.look();
    await sampler.look();
    expect(await stored()).not.toEqual([]);
  });

  /** Makes a sampler of one cluster, whose gateway answers for the look before what `answer` returns. */
  const gatewaySampler = (clusterId: string, answer: (since: string | null, services: Handle[]) => GatewayRequests | null | Error, more: Partial<SamplerParts> = {}) =>
    samplerOf([clusterId], {
      [clusterId]: {
        requests: async (services, since) => {
          const found = answer(since, services);
          if (found instanceof Error) throw found;
          return found;
        },
      },
    }, more); // prettier-ignore

  test('that the gateway of a cluster has counted are stored once, by whichever process looks', async () => {
    const { id, clusterId } = await deployed();
    const looks: string[] = [];
    const known: (string | null)[] = [];
    const answer = (since: string | null, services: Handle[]) => {
      expect(services.map(({ identity }) => identity.serviceId)).toEqual([id]);
      known.push(since);
      looks.push(randomUUID());
      return { look: looks.at(-1)!, counts: since === null ? null : countsOf(id), problems: [] };
    };
    const [one, other] = [gatewaySampler(clusterId, answer), gatewaySampler(clusterId, answer)];
    await one.look();
    expect(await stored()).toEqual([]);
    await other.look();
    await one.look();
    expect(known).toEqual([null, looks[0], looks[1]]);
    const minutes = (await stored()).filter(({ resolution }) => resolution === 60);
    expect(minutes.reduce((sum, { statuses }) => sum + Number(statuses[1]), 0)).toBe(8);
  });

  test('of two processes that look at a gateway at the same time are stored of one', async () => {
    const { id, clusterId } = await deployed();
    await gatewaySampler(clusterId, () => ({ look: randomUUID(), counts: null, problems: [] })).look();
    const { promise: both, resolve: go } = Promise.withResolvers<void>();
    let waiting = 0;
    const requests = async () => {
      if (++waiting === 2) go();
      await both;
      return { look: randomUUID(), counts: countsOf(id), problems: [] };
    };
    await Promise.all([1, 2].map(() => samplerOf([clusterId], { [clusterId]: { requests } }).look()));
    const minutes = (await stored()).filter(({ resolution }) => resolution === 60);
    expect(minutes.reduce((sum, { statuses }) => sum + Number(statuses[1]), 0)).toBe(4);
  });

  test('at a gateway that fails are told with their cluster, and those that may not be read are not', async () => {
    const { clusterId } = await deployed();
    const warn = vi.spyOn(app.platform.log, 'warn');
    onTestFinished(() => warn.mockRestore());
    await gatewaySampler(clusterId, () => new RuntimeError('refused', 'no right')).look();
    expect(warn).not.toHaveBeenCalled();
    const problems = ['The metrics of a pod cannot be read.'];
    await gatewaySampler(clusterId, () => ({ look: randomUUID(), counts: null, problems })).look();
    await gatewaySampler(clusterId, () => new RuntimeError('unreachable', 'away')).look();
    const told = (message: string) => [
      { clusterId, err: expect.objectContaining({ message }) },
      'cannot measure services',
    ];
    expect(warn.mock.calls).toEqual([told(problems[0]!), told('away')]);
  });

  test('at a gateway that does not answer keep no services from being measured, and are asked again once it has', async () => {
    const { id, clusterId } = await deployed();
    const { promise: answer, resolve } = Promise.withResolvers<null>();
    let asked = 0;
    const requests = () => (asked++, answer);
    const sampler = samplerOf([clusterId], { [clusterId]: { requests } }, { answerSeconds: 1 });
    await sampler.look();
    await sampler.look();
    expect([asked, (await samplesOf(id))[0]!.samples]).toEqual([1, 2]);
    resolve(null);
    await answer;
    await sampler.look();
    expect(asked).toBe(2);
  });

  test('are kept for as long as what instances take', async () => {
    const { admin, id } = await deployed();
    const row = {
      organization_id: admin.organizationId,
      service_id: id,
      seconds: 60,
      statuses: sql`array[1]::bigint[]`,
      latencies: sql`array[1]::bigint[]`,
    };
    const at = (hours: number) => new Date(Date.now() - hours * 3_600_000);
    await app.db.insertInto('service_requests').values([{ ...row, resolution: 60, at: at(2) }, { ...row, resolution: 60, at: at(4) }] as never).execute(); // prettier-ignore
    await METRIC_TASKS[0]!.run(app.platform as never, AbortSignal.timeout(30_000));
    expect((await stored()).length).toBe(1);
  });
});
