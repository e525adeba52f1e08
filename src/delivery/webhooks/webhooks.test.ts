import { spawn } from 'node:child_process';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import {
  createWebhookDelivery,
  removeOldDeliveries,
  type WebhookDelivery,
  type WebhookDeliveryOptions,
} from '#delivery/webhooks/index.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { OUTBOX_CHANNEL, outboxInsert, type DeploymentOutboxEvent } from '#platform/events/outbox.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });

const workers: WebhookDelivery[] = [];
const servers: Server[] = [];

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await app.db.deleteFrom('webhook').execute();
  await app.db.deleteFrom('outbox').execute();
});

interface Call {
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
}

/** A receiver that keeps what it is called with; `answer` gives a status, or `hold` for none at all. */
async function receiver(
  answer: (call: Call, number: number) => number | 'hold' | { status: number; headers: Record<string, string> } = () =>
    200,
) {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const call = { headers: request.headers, text, body: JSON.parse(text) };
    calls.push(call);
    const given = answer(call, calls.length);
    if (given === 'hold') return;
    const { status, headers } = typeof given === 'number' ? { status: given, headers: {} } : given;
    response.writeHead(status, headers).end(`answer ${calls.length}`);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

const QUICK = { poll: 20, schedule: [1, 1, 1, 1, 1, 1], grace: 50 };

/** A running worker; unless told otherwise it retries after 1 ms. */
function worker(times: WebhookDeliveryOptions['times'] = {}, client = http, common: typeof times = QUICK) {
  const delivery = createWebhookDelivery({ platform: app.platform, http: client, times: { ...common, ...times } });
  workers.push(delivery);
  delivery.start();
  return delivery;
}

const event = (actor: Actor, change: Partial<DeploymentOutboxEvent> = {}): DeploymentOutboxEvent => ({
  type: 'DEPLOYMENT_SUCCESSFUL',
  organization: { id: actor.organizationId, name: 'Ours' },
  project: { id: newId(), name: 'Shop' },
  environment: { id: newId(), name: 'live', mode: 'PRODUCTION' },
  service: { id: newId(), name: 'front <end>', type: 'APPLICATION' },
  deployment_request_id: newId(),
  status: 'DEPLOYED',
  generation: 4,
  sequence: 9,
  ...change,
});

async function publish(context: Context, organizationId: string, one: DeploymentOutboxEvent): Promise<void> {
  await outboxInsert(organizationId, 'deployment', sql`${json(one)}::jsonb`, sql`(select 1) as once`).execute(
    context.db,
  );
  context.afterCommit(() => context.notify(OUTBOX_CHANNEL));
}

const say = (actor: Actor, ...events: DeploymentOutboxEvent[]) =>
  inTransaction(app.context, async (context) => {
    for (const one of events) await publish(context, actor.organizationId, one);
  });

const EVENTS = ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILED', 'DEPLOYMENT_CANCELLED'];
const register = async (actor: Actor, target_url: string, more: object = {}) =>
  ok(
    await actor.post(`/organization/${actor.organizationId}/webhook`, {
      target_url,
      events: EVENTS,
      enabled: true,
      ...more,
    }),
    201,
  );

const attempts = async (actor: Actor, webhookId: string) =>
  ok(await actor.get(`/organization/${actor.organizationId}/webhook/${webhookId}/event`), 200).results as any[];

const states = async (webhookId: string) =>
  (await app.db.selectFrom('webhook_delivery').select('state').where('webhook_id', '=', webhookId).execute()).map(
    (row) => row.state,
  );

const settled = (webhookId: string, ...expected: string[]) =>
  vi.waitFor(async () => expect(await states(webhookId)).toEqual(expected), { timeout: 5000 });

describe('a webhook is called', () => {
  test('with the event and who it is about, and the call can be read afterwards', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url);
    const said = event(admin);
    await say(admin, said);
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(calls).toHaveLength(1);
    expect(calls[0]!.body).toEqual({
      event_type: 'DEPLOYMENT_SUCCEEDED',
      payload: {
        application_id: said.service.id,
        service_id: said.service.id,
        service_type: 'APPLICATION',
        service_name: 'front <end>',
        organization_id: admin.organizationId,
        organization_name: 'Ours',
        project_id: said.project.id,
        project_name: 'Shop',
        environment_id: said.environment.id,
        environment_name: 'live',
        environment_mode: 'PRODUCTION',
        deployment_request_id: said.deployment_request_id,
        status: 'DEPLOYED',
        generation: 4,
        sequence: 9,
      },
    });
    expect(calls[0]!.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': expect.any(String) });
    expect(calls[0]!.headers['webhook-signature']).toBeUndefined();
    expect(await attempts(admin, webhook.id)).toMatchObject([
      {
        matched_event: 'DEPLOYMENT_SUCCESSFUL',
        target_url_used: url,
        request: calls[0]!.body,
        target_response_status_code: 200,
        target_response_body: 'answer 1',
        delivery_id: calls[0]!.headers['webhook-id'],
        attempt: 1,
      },
    ]);
  });

  test.each([
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
    ['an ordinary pässword', new Verifier(Buffer.from('an ordinary pässword'), { format: 'raw' })],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', { format: 'raw' })],
    ['whsec_!', new Verifier('whsec_!', { format: 'raw' })],
  ])(
    'with a signature of the secret %s that the Standard Webhooks library verifies',
    async (target_secret, verifier) => {
      const admin = await app.organization();
      const { calls, url } = await receiver();
      const webhook = await register(admin, url, { target_secret });
      await say(admin, event(admin));
      worker();
      await settled(webhook.id, 'DELIVERED');
      const { headers, text, body } = calls[0]!;
      expect(verifier.verify(text, headers as Record<string, string>)).toEqual(body);
      expect(() => verifier.verify(`${text} `, headers as Record<string, string>)).toThrow();
    },
  );

  test('so that nobody can replay it: id, time and body are signed together, and an old time is not taken', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 500 : 200));
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const webhook = await register(admin, url, { target_secret: secret });
    await say(admin, event(admin));
    // A second later, so that the second attempt has another time.
    worker({ schedule: [1100, 1, 1, 1, 1, 1] });
    await settled(webhook.id, 'DELIVERED');
    const verifier = new Verifier(secret);
    const [first, second] = calls.map(({ headers }) => headers as Record<string, string>);
    const { text } = calls[0]!;
    for (const headers of [first!, second!]) verifier.verify(text, headers);
    expect(second!['webhook-timestamp']).not.toBe(first!['webhook-timestamp']);
    const forged = [
      { ...first!, 'webhook-timestamp': second!['webhook-timestamp']! },
      { ...first!, 'webhook-id': `msg_${newId()}` },
      { ...first!, 'webhook-signature': 'v1,' },
    ];
    for (const headers of forged) expect(() => verifier.verify(text, headers)).toThrow();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 6 * 60_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(() => verifier.verify(text, first!)).toThrow(/too old/);
  });

  test('with a text for people when it is of the kind SLACK, without markup from names', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url, { kind: 'SLACK' });
    await say(admin, event(admin));
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(calls[0]!.body).toEqual({
      text: 'Deployment of *front &lt;end&gt;* (Ours / Shop / live) has succeeded: DEPLOYED',
    });
  });

  test('only for events, projects and modes that it asked for, of its own organization, and while it is on', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { calls, url } = await receiver();
    const only = await register(admin, `${url}?only`, {
      events: ['DEPLOYMENT_FAILURE'],
      project_names_filter: ['shop'],
      environment_types_filter: ['PRODUCTION'],
    });
    const all = await register(admin, `${url}?all`);
    const off = await register(admin, `${url}?off`, { enabled: false });
    const theirs = await register(stranger, `${url}?theirs`);
    const failed = event(admin, { type: 'DEPLOYMENT_FAILURE' });
    await say(
      admin,
      failed,
      event(admin),
      { ...failed, project: { id: newId(), name: 'Shopping' } },
      { ...failed, environment: { ...failed.environment, mode: 'STAGING' } },
    );
    worker();
    await settled(only.id, 'DELIVERED');
    await settled(all.id, ...Array(4).fill('DELIVERED'));
    expect([await states(off.id), await states(theirs.id)]).toEqual([[], []]);
    expect(calls).toHaveLength(5);
  });

  test('once the transaction of the event is committed, and never for one that is rolled back', async () => {
    const admin = await app.organization();
    const { url } = await receiver();
    const webhook = await register(admin, url);
    const failing = inTransaction(app.context, async (context) => {
      await publish(context, admin.organizationId, event(admin));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const said = event(admin);
    await say(admin, said);
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect((await attempts(admin, webhook.id))[0].request.payload.service_id).toBe(said.service.id);
  });
});

describe('a call that fails', () => {
  test('is made again under the same id with the same body until it is answered with 2xx, each attempt on record', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => [500, 404, 204][number - 1]!);
    const webhook = await register(admin, url, { target_secret: 's' });
    await say(admin, event(admin));
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(new Set(calls.map((call) => `${call.headers['webhook-id']} ${call.text}`)).size).toBe(1);
    expect((await attempts(admin, webhook.id)).map((one) => [one.attempt, one.target_response_status_code])).toEqual([
      [3, 204],
      [2, 404],
      [1, 500],
    ]);
  });

  test('is given up after the seventh attempt, and made again when somebody asks for it', async () => {
    const admin = await app.organization();
    let broken = true;
    const { calls, url } = await receiver(() => (broken ? 503 : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const delivery = worker();
    await settled(webhook.id, 'FAILED');
    expect(calls).toHaveLength(7);
    broken = false;
    const [last] = await attempts(admin, webhook.id);
    ok(await admin.post(`/organization/${admin.organizationId}/webhook/${webhook.id}/event/${last.id}/resend`), 200);
    delivery.nudge();
    await settled(webhook.id, 'DELIVERED');
    expect(calls).toHaveLength(8);
    expect(new Set(calls.map((call) => call.headers['webhook-id'])).size).toBe(1);
    expect((await attempts(admin, webhook.id))[0]).toMatchObject({ attempt: 8, target_response_status_code: 200 });
  });

  test('is made again after 5 s, 30 s, 2 min, 10 min, 1 h and 6 h', async () => {
    const admin = await app.organization();
    const { url } = await receiver(() => 500);
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const delivery = worker({}, http, {});
    const seconds: number[] = [];
    for (let number = 1; number <= 6; number++) {
      const row = await vi.waitFor(
        () =>
          app.db
            .selectFrom('webhook_delivery')
            .select(sql<number>`extract(epoch from next_attempt_at - now())::float8`.as('seconds'))
            .where('webhook_id', '=', webhook.id)
            .where('attempts', '=', number)
            .where('claim_token', 'is', null)
            .executeTakeFirstOrThrow(),
        { timeout: 5000 },
      );
      seconds.push(Math.round(row.seconds));
      await app.db
        .updateTable('webhook_delivery')
        .set({ next_attempt_at: new Date(0) })
        .where('webhook_id', '=', webhook.id)
        .execute();
      delivery.nudge();
    }
    await settled(webhook.id, 'FAILED');
    expect(seconds).toEqual([5, 30, 120, 600, 3600, 21600]);
  });

  test('because nobody answers in time, or listens at all, is kept as code 0 with the reason', async () => {
    const admin = await app.organization();
    const slow = await receiver(() => 'hold');
    const closed = await receiver();
    await new Promise((resolve) => servers.pop()!.close(resolve));
    const [first, second] = [await register(admin, slow.url), await register(admin, closed.url)];
    await say(admin, event(admin));
    worker({ timeout: 100, schedule: [] });
    await settled(first.id, 'FAILED');
    await settled(second.id, 'FAILED');
    expect(await attempts(admin, first.id)).toMatchObject([
      { target_response_status_code: 0, target_response_body: expect.stringContaining('within 100 ms') },
    ]);
    expect(await attempts(admin, second.id)).toMatchObject([
      { target_response_status_code: 0, target_response_body: expect.stringContaining('ECONNREFUSED') },
    ]);
  });

  test('is answered with a redirect, which is not followed', async () => {
    const admin = await app.organization();
    const inner = await receiver();
    const { url } = await receiver(() => ({ status: 307, headers: { location: inner.url } }));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    worker({ schedule: [] });
    await settled(webhook.id, 'FAILED');
    expect(await attempts(admin, webhook.id)).toMatchObject([{ target_response_status_code: 307 }]);
    expect(inner.calls).toEqual([]);
  });

  test('goes to a name that has come to mean a private address, and is refused at the connection', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url.replace('127.0.0.1', 'rebind.example.org'));
    await say(admin, event(admin));
    const client = createHttpClient({
      allowedPrivateAddresses: [],
      lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    });
    worker({ schedule: [] }, client);
    await settled(webhook.id, 'FAILED');
    expect(await attempts(admin, webhook.id)).toMatchObject([
      {
        target_response_status_code: 0,
        target_response_body: expect.stringContaining('rebind.example.org (127.0.0.1) is a private'),
      },
    ]);
    expect(calls).toEqual([]);
  });

  test('has an answer that PostgreSQL cannot hold or that is long, which is kept as far as it goes', async () => {
    const admin = await app.organization();
    const server = createServer(
      (_request, response) =>
        void response
          .writeHead(400)
          .end(Buffer.concat([Buffer.from('a\0b\xff', 'latin1'), Buffer.alloc(100_000, 'x')])),
    );
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const webhook = await register(admin, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await say(admin, event(admin));
    worker({ schedule: [] });
    await settled(webhook.id, 'FAILED');
    const [kept] = await attempts(admin, webhook.id);
    expect(kept.target_response_body).toMatch(/^a\uFFFDb\uFFFDx+$/);
    expect(kept.target_response_body).toHaveLength(16 * 1024);
  });
});

describe('workers', () => {
  test('share the work: of many events each is delivered once', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url);
    await say(admin, ...Array.from({ length: 250 }, (_, sequence) => event(admin, { sequence })));
    worker();
    worker();
    worker();
    await vi.waitFor(async () => expect(await states(webhook.id)).toEqual(Array(250).fill('DELIVERED')), {
      timeout: 15_000,
    });
    expect(calls.map((call) => call.body.payload.sequence).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 250 }, (_, i) => i),
    );
    expect(new Set(calls.map((call) => call.headers['webhook-id'])).size).toBe(250);
  });

  test('are not held up by a receiver that does not answer', async () => {
    const admin = await app.organization();
    const [slow, quick] = [await receiver(() => 'hold'), await receiver()];
    const held = await register(admin, slow.url);
    await say(admin, ...Array.from({ length: 100 }, () => event(admin)));
    const delivery = worker();
    await vi.waitFor(() => expect(slow.calls.length).toBeGreaterThanOrEqual(8));
    const webhook = await register(admin, quick.url);
    await say(admin, event(admin));
    delivery.nudge();
    await settled(webhook.id, 'DELIVERED');
    expect(slow.calls.length).toBeLessThan(20);
    expect(new Set(await states(held.id))).toEqual(new Set(['PENDING']));
  });

  test('that are killed in the middle of a call lose nothing: another makes it again under the same id', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 'hold' : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(app.db);
    const child = spawn(process.execPath, [path.join(import.meta.dirname, 'worker.fixture.ts')], {
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.stdin.end(
      JSON.stringify({ config: { ...inject('postgres'), database: rows[0]!.name }, times: { lease: 1000 } }),
    );
    await vi.waitFor(() => expect(calls).toHaveLength(1), { timeout: 10_000 });
    child.kill('SIGKILL');
    await ended;
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(calls).toHaveLength(2);
    expect(calls[1]!.headers['webhook-id']).toBe(calls[0]!.headers['webhook-id']);
    expect((await attempts(admin, webhook.id)).map((one) => [one.attempt, one.target_response_status_code])).toEqual([
      [2, 200],
      [1, 0],
    ]);
    const row = await app.db
      .selectFrom('webhook_delivery')
      .select('tries')
      .where('webhook_id', '=', webhook.id)
      .executeTakeFirstOrThrow();
    expect(row.tries).toBe(1);
  });

  test('that are stopped give back what is under way, and it does not count as a try', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 'hold' : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const first = worker();
    await vi.waitFor(() => expect(calls).toHaveLength(1));
    await first.stop();
    const row = await app.db
      .selectFrom('webhook_delivery')
      .selectAll()
      .where('webhook_id', '=', webhook.id)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ state: 'PENDING', tries: 0, claim_token: null });
    worker();
    await settled(webhook.id, 'DELIVERED');
  });

  test('go on when a webhook is deleted or switched off in the middle of a call', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver(() => 'hold');
    const [deleted, off] = [await register(admin, url), await register(admin, url)];
    await say(admin, event(admin));
    worker({ timeout: 300 });
    await vi.waitFor(() => expect(calls).toHaveLength(2));
    ok(await admin.delete(`/organization/${admin.organizationId}/webhook/${deleted.id}`), 204);
    ok(
      await admin.put(`/organization/${admin.organizationId}/webhook/${off.id}`, {
        target_url: url,
        events: EVENTS,
        enabled: false,
      }),
      200,
    );
    await vi.waitFor(async () => expect(await attempts(admin, off.id)).toHaveLength(1), { timeout: 5000 });
    expect([await states(off.id), await states(deleted.id), calls.length]).toEqual([['CANCELED'], [], 2]);
  });
});

test('deliveries that are over are removed after 30 days with their attempts, others stay', async () => {
  const admin = await app.organization();
  const { url } = await receiver();
  const webhook = await register(admin, url);
  await say(admin, event(admin), event(admin), event(admin));
  worker();
  await settled(webhook.id, ...Array(3).fill('DELIVERED'));
  const [old, waiting] = await attempts(admin, webhook.id);
  const age = (id: string, state: string) =>
    app.db
      .updateTable('webhook_delivery')
      .set({ created_at: sql`now() - interval '31 days'`, next_attempt_at: sql`now() + interval '1 hour'`, state })
      .where('id', '=', id)
      .execute();
  await age(old.delivery_id, 'FAILED');
  await age(waiting.delivery_id, 'PENDING');
  expect(await removeOldDeliveries(app.platform)).toBe(1);
  expect((await attempts(admin, webhook.id)).map((one) => one.delivery_id)).not.toContain(old.delivery_id);
  expect((await states(webhook.id)).sort()).toEqual(['DELIVERED', 'PENDING']);
});
