import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';
import {
  dataOf,
  isDeployed,
  listen,
  startReplica,
  streamPath,
  useStreams,
  type Sent,
  type StreamClient,
} from '#test/harness/stream.ts';

const app = useApp({ QUARTERDECK_STREAMS_PER_TOKEN: '5', QUARTERDECK_STREAMS: '12' });
useEngine(app);
const { stream, open, closeAll } = useStreams(app);

const makeProject = async (actor: Actor): Promise<any> =>
  ok(await actor.post(`/organization/${actor.organizationId}/project`, { name: `p ${newId()}` }), 201);

describe('a deployment', () => {
  test('is told from its request to its end, with its services, steps and audit events, as the API answers them', async () => {
    const admin = await app.organization();
    const { project, environment, application } = await makeExample(admin);
    const client = await stream(admin);
    const { deployment_request_id, execution_id } = ok(
      await admin.post(`/application/${application.id}/deploy?wait=40`, {}),
      200,
    );
    const events = await client.until(isDeployed);
    const place = {
      organization_id: admin.organizationId,
      project_id: project.id,
      project_name: project.name,
      environment_id: environment.id,
      environment_name: environment.name,
      deployment_request_id,
      execution_id,
    };
    for (const name of ['deployment', 'service-state', 'step'])
      for (const data of dataOf(events, name)) expect(data).toMatchObject(place);
    expect(dataOf(events, 'deployment').map((data) => data.status)).toEqual(
      ['DEPLOYMENT_QUEUED', 'DEPLOYING', 'RECAP', 'DEPLOYED'].filter((status) =>
        dataOf(events, 'deployment').some((data) => data.status === status),
      ),
    );
    const states = dataOf(events, 'service-state');
    expect(states.map((data) => data.state)).toEqual([
      'DEPLOYMENT_QUEUED',
      'WAITING_RUNNING',
      'BUILDING',
      'DEPLOYING',
      'DEPLOYED',
    ]);
    expect(states[0]).toMatchObject({
      service: { id: application.id, name: 'hello', service_type: 'APPLICATION' },
      status_details: { action: 'DEPLOY', status: 'QUEUED', sub_action: 'NONE' },
    });
    const { details } = ok(await admin.get(`/application/${application.id}/status`), 200).steps;
    expect(
      dataOf(events, 'step')
        .filter((step) => step.status !== 'ONGOING')
        .map(({ step_name, status, started_at }) => ({ step_name, status, started_at })),
    ).toEqual(details.map(({ step_name, status, started_at }: any) => ({ step_name, status, started_at })));
    const listed = ok(await admin.get(`/organization/${admin.organizationId}/events?pageSize=100`), 200).events;
    const told = dataOf(events, 'audit');
    expect(told.length).toBeGreaterThanOrEqual(2);
    for (const event of told) expect(listed).toContainEqual(event);
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length);
  });

  test('is followed by its log lines, all of them once, of the deployment or of one of its services', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeExample(admin);
    const whole = await stream(admin, { query: `?types=log&environmentId=${environment.id}` });
    const one = await stream(admin, { query: `?types=log&serviceId=${application.id}` });
    ok(await admin.post(`/application/${application.id}/deploy?wait=40`, {}), 200);
    const lines: any[] = ok(await admin.get(`/environment/${environment.id}/logs`), 200);
    const told = (client: StreamClient) => dataOf(client.events, 'log').flatMap((data) => data.lines);
    await whole.until(() => told(whole).length >= lines.length);
    expect(told(whole).map(({ timestamp, message }) => ({ timestamp, message }))).toEqual(
      lines.map((line) => ({ timestamp: line.timestamp, message: line.message.safe_message })),
    );
    const own = lines.filter((line) => line.details.transmitter.id === application.id);
    await one.until(() => told(one).length >= own.length);
    expect(own.length).toBeGreaterThan(0);
    expect(told(one).map((line) => line.message)).toEqual(own.map((line) => line.message.safe_message));
  });
});

describe('a client', () => {
  /** Projects that were told of; what was committed just before the stream began may be told as well. */
  const projects = (events: Sent[]): string[] =>
    events.filter(({ data }) => data.target_type === 'PROJECT').map(({ data }) => data.target_id);
  const has = (made: string[]) => (events: Sent[]) => projects(events).includes(made.at(-1)!);

  test('resumes after its last event by header or by query, on another process and after a restart, without a gap or a double', async () => {
    const admin = await app.organization();
    const first = await stream(admin);
    const made: string[] = [(await makeProject(admin)).id];
    await first.until(has(made));
    await first.close();
    made.push((await makeProject(admin)).id, (await makeProject(admin)).id);
    const other = await startReplica(app);
    try {
      const second = await stream(admin, { base: other.base, lastId: first.lastId });
      await second.until(has(made));
      made.push((await makeProject(admin)).id);
      await second.until(has(made));
      // A restart: the server ends its streams itself, and at once.
      await other.close();
      await second.ended;
      made.push((await makeProject(admin)).id);
      const third = await stream(admin, { query: `?lastEventId=${second.lastId}` });
      await third.until(has(made));
      made.push((await makeProject(admin)).id);
      await third.until(has(made));
      expect(projects([...first.events, ...second.events, ...third.events])).toEqual(made);
      // The header is the newer one: what reconnects by itself sends the query of its first connection again.
      const fourth = await stream(admin, { query: `?lastEventId=${first.lastId}`, lastId: third.lastId });
      made.push((await makeProject(admin)).id);
      await fourth.until(has(made));
      expect(projects(fourth.events)).toEqual([made.at(-1)]);
    } finally {
      await other.close();
    }
  });

  test('hears of what its filters name only', async () => {
    const admin = await app.organization();
    const [watched, other] = [await makeExample(admin), await makeExample(admin)];
    const queries = [
      `?projectId=${watched.project.id}`,
      `?environmentId=${watched.environment.id}&types=step&types=service-state`,
      `?serviceId=${watched.application.id}&types=service-state`,
      '?types=deployment',
    ];
    const [project, environment, service, types] = await Promise.all(queries.map((query) => stream(admin, { query })));
    const ended = await stream(admin);
    for (const { application } of [other, watched])
      ok(await admin.post(`/application/${application.id}/deploy?wait=40`, {}), 200);
    const { deployment_request_id: request } = ok(
      await admin.get(`/application/${watched.application.id}/status`),
      200,
    );
    await ended.until(
      () => dataOf(ended.events, 'deployment').filter(({ status }) => status === 'DEPLOYED').length === 2,
    );
    await project!.until(isDeployed);
    await types!.until(
      (events) => dataOf(events, 'deployment').filter(({ status }) => status === 'DEPLOYED').length === 2,
    );
    expect(new Set(project!.events.map(({ data }) => data.project_id))).toEqual(new Set([watched.project.id]));
    expect(new Set(project!.events.map(({ event }) => event))).toEqual(
      new Set(['deployment', 'service-state', 'step', 'audit']),
    );
    await environment!.until((events) => dataOf(events, 'service-state').at(-1)?.state === 'DEPLOYED');
    expect(new Set(environment!.events.map(({ event }) => event))).toEqual(new Set(['service-state', 'step']));
    expect(new Set(environment!.events.map(({ data }) => data.environment_id))).toEqual(
      new Set([watched.environment.id]),
    );
    await service!.until((events) => events.at(-1)?.data.state === 'DEPLOYED');
    expect(new Set(service!.events.map(({ data }) => data.service.id))).toEqual(new Set([watched.application.id]));
    expect(new Set(types!.events.map(({ event }) => event))).toEqual(new Set(['deployment']));
    await closeAll();
    const past = await stream(admin, { query: `?deploymentRequestId=${request}`, lastId: project!.begin });
    await past.until(isDeployed);
    expect(new Set(past.events.map(({ data }) => data.deployment_request_id))).toEqual(new Set([request]));
  });

  test('that reads nothing holds up nobody, and reads all of it later', async () => {
    const admin = await app.organization();
    const headers = { authorization: `Token ${admin.token}` };
    const request = get(`${await listen(app.server)}${streamPath(admin)}`, { headers });
    const [slow] = (await once(request, 'response')) as [IncomingMessage];
    const quick = await stream(admin);
    const note = 'x'.repeat(2_000);
    const count = 2_500;
    for (let from = 0; from < count; from += 500)
      await app.database.pool.query(
        `insert into audit_event (id, organization_id, event_type, target_type, target_id, target_name, triggered_by, origin)
          select gen_random_uuid(), $1, 'UPDATE', 'PROJECT', gen_random_uuid(), $2 || n, 'ada', 'API'
          from generate_series($3::int + 1, $3::int + 500) n`,
        [admin.organizationId, note, from],
      );
    await quick.until(count, 15_000);
    let text = '';
    slow.setEncoding('utf8').on('data', (chunk) => (text += String(chunk)));
    const all = (): boolean => text.includes(`x${count}"`, text.length - 10_000);
    await expect.poll(all).toBe(true);
    request.destroy();
    const names = [...text.matchAll(/"target_name":"x+(\d+)"/g)].map((match) => Number(match[1]));
    expect(names).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });
});

describe('what is asked wrongly', () => {
  test.each([
    ['?types=log', 'types'],
    ['?types=deployment&types=log', 'types'],
    ['?types=nonsense', 'types[0]'],
    ['?environmentId=nonsense', 'environmentId'],
    ['?lastEventId=nonsense', 'lastEventId'],
  ])('%s is 400 and names the field', async (query, field) => {
    const admin = await app.organization();
    expect(await admin.get(streamPath(admin, query))).toMatchObject({ status: 400, body: { errors: [{ field }] } });
  });

  test('more streams than a token may have are 429, more than a process serves 503, and one that is closed makes room', async () => {
    const [admin, second, third] = [await app.organization(), await app.organization(), await app.organization()];
    for (let n = 0; n < 5; n++) await stream(admin);
    expect(await admin.get(streamPath(admin))).toMatchObject({ status: 429, headers: { 'retry-after': '10' } });
    for (let n = 0; n < 5; n++) await stream(second);
    await stream(third);
    await stream(third);
    expect(await third.get(streamPath(third))).toMatchObject({ status: 503, headers: { 'retry-after': '10' } });
    await open.pop()!.close();
    await expect.poll(async () => (await third.get(streamPath(third))).status).toBe(200);
  });
});
