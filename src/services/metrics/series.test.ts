import { Registry } from 'prom-client';
import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { registerServiceGauges } from '#services/metrics/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample } from '#test/harness/engine.ts';

const app = useApp();

/** Whole hour some time ago, in seconds since 1970. */
const HOUR = Math.floor(Date.now() / 3_600_000) * 3600 - 3600;

interface Place {
  admin: Actor;
  clusterId: string;
  projectId: string;
  environmentId: string;
  id: string;
}

async function place(admin?: Actor): Promise<Place> {
  const owner = admin ?? (await app.organization());
  const { project, environment, application } = await makeExample(owner);
  const [clusterId, environmentId] = [environment.cluster_id, environment.id];
  return { admin: owner, clusterId, projectId: project.id, environmentId, id: application.id };
}

/** Stores an interval with two measurements of 250 mCPU and 100 MiB on average. */
const store = ({ admin, id }: Place, resolution: number, at: number, changes: Record<string, number> = {}) =>
  app.db
    .insertInto('service_metric')
    .values({
      organization_id: admin.organizationId,
      service_id: id,
      resolution,
      at: new Date(at * 1000),
      instances: 2,
      restarts: 3,
      samples: 2,
      cpu_milli_sum: 500,
      cpu_milli_max: 400,
      cpu_milli_limit: 1000,
      memory_bytes_sum: 200 * 2 ** 20,
      memory_bytes_max: 150 * 2 ** 20,
      memory_bytes_limit: 0,
      ...changes,
    })
    .execute();

/** Stores an interval of requests: 20 in 60 s, of which 5 failed. */
const storeRequests = (
  { admin, id }: Place,
  resolution: number,
  at: number,
  latencies = [10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1],
) =>
  sql`insert into service_requests (organization_id, service_id, resolution, at, seconds, statuses, latencies)
    values (${admin.organizationId}, ${id}, ${resolution}, ${new Date(at * 1000)}, 60, '{0,15,0,0,5}', ${latencies}::bigint[])`.execute(
    app.db,
  );

/** Caller with an API token. */
const bearer = (token: string) =>
  ({ get: (url: string) => app.anonymous('GET', url, undefined, { authorization: `Token ${token}` }) }) as Pick<
    Actor,
    'get'
  >;
const ask = (by: Pick<Actor, 'get'>, { clusterId }: Place, query: string, more: string) =>
  by.get(`/cluster/${clusterId}/metrics?query=${encodeURIComponent(query)}&${more}`);
const resultOf = (body: { metrics: string }) => JSON.parse(body.metrics).data.result;

describe('a metric of services', () => {
  let one: Place;
  beforeAll(async () => {
    one = await place();
    await store(one, 60, HOUR);
    await store(one, 60, HOUR + 60, { cpu_milli_sum: 700 });
  });

  test.each([
    ['quarterdeck_service_instances', '2'],
    ['quarterdeck_service_restarts', '3'],
    ['quarterdeck_service_cpu_cores', '0.25'],
    ['quarterdeck_service_cpu_cores_max', '0.4'],
    ['quarterdeck_service_cpu_limit_cores', '1'],
    ['quarterdeck_service_memory_bytes', String(100 * 2 ** 20)],
    ['quarterdeck_service_memory_bytes_max', String(150 * 2 ** 20)],
  ])('%s is answered for a time in the form of Prometheus', async (name, value) => {
    const { metrics } = ok(await ask(one.admin, one, name, `endpoint=query&time=${HOUR + 30}`), 200);
    const { project, environment, application } = { project: one.projectId, environment: one.environmentId, application: one.id }; // prettier-ignore
    expect(JSON.parse(metrics)).toEqual({
      status: 'success',
      data: {
        resultType: 'vector',
        result: [
          {
            metric: {
              __name__: name,
              service_id: application,
              service: expect.any(String),
              kind: 'APPLICATION',
              environment_id: environment,
              environment: expect.any(String),
              project_id: project,
              project: expect.any(String),
              cluster_id: one.clusterId,
            },
            value: [HOUR + 30, value],
          },
        ],
      },
    });
  });

  test('has a value at each step of a range, for as long as the last measurement stands', async () => {
    const range = `endpoint=query_range&start=${HOUR - 60}&end=${HOUR + 600}&step=60`;
    const [series] = resultOf(ok(await ask(one.admin, one, 'quarterdeck_service_cpu_cores', range), 200));
    expect(series.values).toEqual([[HOUR, '0.25'], ...[60, 120, 180, 240, 300].map((after) => [HOUR + after, '0.35'])]);
  });

  test.each([
    'quarterdeck_service_memory_limit_bytes',
    'quarterdeck_service_nonsense',
    'quarterdeck_service_constructor',
  ])('%s has no series where there is no limit or no such metric', async (name) => {
    expect(resultOf(ok(await ask(one.admin, one, name, `endpoint=query&time=${HOUR}`), 200))).toEqual([]);
  });

  test('is chosen by its labels', async () => {
    const two = await place(one.admin);
    await store(two, 60, HOUR);
    const name = 'quarterdeck_service_instances';
    const found = async (labels: string) =>
      resultOf(ok(await ask(one.admin, one, `${name}{${labels}}`, `endpoint=query&time=${HOUR}`), 200)).map(
        ({ metric }: { metric: { service_id: string } }) => metric.service_id,
      );
    expect(await found('')).toEqual([one.id, two.id].sort());
    expect(await found(`service_id="${two.id}"`)).toEqual([two.id]);
    expect(await found(`environment_id!="${two.environmentId}"`)).toEqual([one.id]);
    expect(await found('kind="DATABASE"')).toEqual([]);
  });

  test.each([
    ['endpoint=query_range&start=1&end=2', 'step'],
    ['endpoint=query_range&start=1&end=2&step=0', 'step'],
    ['endpoint=query_range&start=0&end=11000&step=1', 'step'],
    ['endpoint=query_range&start=2&end=1&step=1', 'start'],
    ['endpoint=query_range&start=2&step=1', 'end'],
    ['endpoint=query&time=yesterday', 'time'],
  ])('is refused with %s', async (more, field) => {
    const answer = ok(await ask(one.admin, one, 'quarterdeck_service_cpu_cores', more), 400);
    expect(answer.errors[0].field).toBe(field);
  });

  test('is refused where the answer would be too large', async () => {
    const crowd = await place();
    for (let more = 0; more < 9; more++)
      ok(
        await crowd.admin.post(`/environment/${crowd.environmentId}/application`, exampleBody({ name: newId() })),
        201,
      );
    const range = `endpoint=query_range&start=${HOUR - 10_000}&end=${HOUR}&step=1`;
    const name = 'quarterdeck_service_cpu_cores';
    expect(ok(await ask(crowd.admin, crowd, name, range), 400).message).toContain('name fewer by service_id');
    ok(await ask(crowd.admin, crowd, `${name}{service_id="${crowd.id}"}`, range), 200);
  });
});

describe('requests of a service', () => {
  let one: Place;
  beforeAll(async () => {
    one = await place();
    await storeRequests(one, 60, HOUR);
  });
  const valuesOf = async (query: string, label: string, at = HOUR + 30) =>
    Object.fromEntries(
      resultOf(ok(await ask(one.admin, one, query, `endpoint=query&time=${at}`), 200)).map(
        ({ metric, value }: { metric: Record<string, string>; value: [number, string] }) => [
          metric[label],
          Number(value[1]),
        ],
      ),
    );

  test('are answered for each hundred of their status', async () => {
    const name = 'quarterdeck_service_requests_per_second';
    expect(await valuesOf(name, 'status')).toEqual({ '2xx': 0.25, '3xx': 0, '4xx': 0, '5xx': 5 / 60 });
    expect(await valuesOf(`${name}{status="5xx"}`, 'status')).toEqual({ '5xx': 5 / 60 });
    expect(await valuesOf(`${name}{status="6xx"}`, 'status')).toEqual({});
  });

  test('have their latency, evenly spread within its class, and of none above all bounds', async () => {
    const name = 'quarterdeck_service_latency_seconds';
    expect(await valuesOf(name, 'quantile')).toEqual({ '0.5': 0.005, '0.95': 0.05, '0.99': 30 });
    await storeRequests(one, 60, HOUR + 600, [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(await valuesOf(`${name}{quantile="0.5"}`, 'quantile', HOUR + 630)).toEqual({ '0.5': 0.0025 });
  });

  test('have no latency where there were none', async () => {
    await storeRequests(
      one,
      60,
      HOUR + 1200,
      Array.from({ length: 13 }, () => 0),
    );
    expect(await valuesOf('quarterdeck_service_latency_seconds', 'quantile', HOUR + 1230)).toEqual({});
  });

  test('are shown to Prometheus while they are the present', async () => {
    const registry = new Registry();
    registerServiceGauges(registry, app.db);
    expect(await registry.metrics()).not.toContain(one.id);
    await storeRequests(one, 60, Math.floor(Date.now() / 60_000) * 60);
    const text = await registry.metrics();
    expect(text).toMatch(
      new RegExp(`quarterdeck_service_requests_per_second\\{service_id="${one.id}".*status="2xx"\\} 0.25\n`),
    );
    expect(text).toMatch(
      new RegExp(`quarterdeck_service_latency_seconds\\{service_id="${one.id}".*quantile="0.95"\\} 0.05\n`),
    );
  });
});

test('the intervals of an answer follow from its step, and from how long they are kept', async () => {
  const one = await place();
  for (const [resolution, restarts] of [
    [60, 60],
    [600, 600],
    [3600, 3600],
  ] as const)
    for (const hours of [0, 10, 100]) await store(one, resolution, HOUR - hours * 3600, { restarts });
  const valuesAt = async (hoursAgo: number, step: string) => {
    const start = HOUR - hoursAgo * 3600;
    const range = `endpoint=query_range&start=${start}&end=${start + 30}&step=${step}`;
    const [series] = resultOf(ok(await ask(one.admin, one, 'quarterdeck_service_restarts', range), 200));
    return series.values[0][1];
  };
  expect(await Promise.all(['15s', '10m', '1h'].map((step) => valuesAt(0, step)))).toEqual(['60', '600', '3600']);
  expect(await Promise.all(['15s', '1h'].map((step) => valuesAt(10, step)))).toEqual(['600', '3600']);
  expect(await valuesAt(100, '15s')).toBe('3600');
});

test('only services that the caller may read are answered', async () => {
  const seen = await place();
  const hidden = await place(seen.admin);
  for (const one of [seen, hidden]) await store(one, 60, HOUR);
  const of = `/organization/${seen.admin.organizationId}`;
  const body = {
    name: newId(),
    cluster_permissions: [{ cluster_id: seen.clusterId, permission: 'VIEWER' }],
    project_permissions: [{ project_id: seen.projectId, is_admin: true }],
  };
  const role = ok(await seen.admin.post(`${of}/customRole`, body), 201);
  const { token } = ok(await seen.admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  const by = bearer(token);
  const query = ['quarterdeck_service_instances', `endpoint=query&time=${HOUR}`] as const;
  const ids = async (who: Pick<Actor, 'get'>) =>
    resultOf(ok(await ask(who, seen, ...query), 200)).map((one: { metric: { service_id: string } }) => one.metric.service_id); // prettier-ignore
  expect(await ids(seen.admin)).toEqual([seen.id, hidden.id].sort());
  expect(await ids(by)).toEqual([seen.id]);
  const { admin: stranger } = await place();
  ok(await ask(stranger, seen, ...query), 404);
});

test('a policy that allows one project opens its services, and nothing of the machine', async () => {
  const seen = await place();
  const hidden = await place(seen.admin);
  for (const one of [seen, hidden]) await store(one, 60, HOUR);
  const opa_policy = `package p\nallow if input.project_id == "${seen.projectId}"`;
  const of = `/organization/${seen.admin.organizationId}`;
  const { token } = ok(await seen.admin.post(`${of}/policyApiToken`, { name: newId(), opa_policy }), 201);
  const more = `endpoint=query&time=${HOUR}`;
  const series = resultOf(ok(await ask(bearer(token), seen, 'quarterdeck_service_instances', more), 200));
  expect(series.map((one: { metric: { service_id: string } }) => one.metric.service_id)).toEqual([seen.id]);
  expect(ok(await ask(bearer(token), seen, 'node_load1', more), 403).message).toContain('cluster.read');
});

test('Prometheus sees the present of all services, and nothing of what is measured no longer', async () => {
  const [present, past] = [await place(), await place()];
  const now = Math.floor(Date.now() / 60_000) * 60;
  await store(present, 60, now - 60, { restarts: 1 });
  await store(present, 60, now, { restarts: 4 });
  await store(past, 60, now - 300);
  const registry = new Registry();
  registerServiceGauges(registry, app.db);
  const text = await registry.metrics();
  expect(text).toContain(`quarterdeck_service_cpu_cores{service_id="${present.id}",`);
  expect(text).toMatch(new RegExp(`quarterdeck_service_restarts\\{service_id="${present.id}".*\\} 4\n`));
  expect(text).not.toContain(past.id);
  await app.db.deleteFrom('service_metric').where('service_id', '=', present.id).execute();
  expect(await registry.metrics()).not.toContain(present.id);
});
