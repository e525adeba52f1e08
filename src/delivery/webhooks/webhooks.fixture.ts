import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, vi } from 'vitest';
import { createWebhookDelivery, type WebhookDeliveryOptions } from '#delivery/webhooks/index.ts';
import { newId } from '#kernel/ids.ts';
import { inTransaction, type Context } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { json } from '#platform/database/json.ts';
import { OUTBOX_CHANNEL, outboxInsert, type DeploymentOutboxEvent } from '#platform/events/outbox.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

export interface Call {
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
}

type Answer = number | 'hold' | { status: number; headers: Record<string, string> };

const QUICK = {
  poll: 20,
  schedule: [1, 1, 1, 1, 1, 1],
  grace: 50,
  breaker: { failures: 1000, pauseMs: 1, longestPauseMs: 1 },
};

export const event = (actor: Actor, change: Partial<DeploymentOutboxEvent> = {}): DeploymentOutboxEvent => ({
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

export async function publish(context: Context, organizationId: string, one: DeploymentOutboxEvent): Promise<void> {
  await outboxInsert(organizationId, 'deployment', sql`${json(one)}::jsonb`, sql`(select 1) as once`).execute(
    context.db,
  );
  context.afterCommit(() => context.notify(OUTBOX_CHANNEL));
}

export const EVENTS = ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILED', 'DEPLOYMENT_CANCELLED'];

/** Organizations whose webhooks call receivers of this process, and the workers that make the calls; all of it ends with each test. */
export function useWebhooks() {
  const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
  const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });

  const workers: ReturnType<typeof createWebhookDelivery>[] = [];
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

  /** A receiver that keeps what it is called with; `answer` gives a status, at once or later, or `hold` for none at all. */
  async function receiver(answer: (call: Call, number: number) => Answer | Promise<Answer> = () => 200) {
    const calls: Call[] = [];
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      const call = { headers: request.headers, text, body: JSON.parse(text) };
      calls.push(call);
      const given = await answer(call, calls.length);
      if (given === 'hold') return;
      const { status, headers } = typeof given === 'number' ? { status: given, headers: {} } : given;
      response.writeHead(status, headers).end(`answer ${calls.length}`);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
  }

  /** A running worker; unless told otherwise it retries after 1 ms. */
  function worker(times: WebhookDeliveryOptions['times'] = {}, client = http, common: typeof times = QUICK) {
    const all = { ...common, ...times };
    const delivery = createWebhookDelivery({ platform: app.platform, nodeId: newId(), http: client, times: all });
    workers.push(delivery);
    delivery.start();
    return delivery;
  }

  const say = (actor: Actor, ...events: DeploymentOutboxEvent[]) =>
    inTransaction(app.context, async (context) => {
      for (const one of events) await publish(context, actor.organizationId, one);
    });

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
    vi.waitFor(async () => expect(await states(webhookId)).toEqual(expected), { timeout: 40_000 });

  /** Reads what stands of a webhook: itself, its deliveries and their attempts. */
  const recordOf = async (webhookId: string) => ({
    webhook: await app.db.selectFrom('webhook').selectAll().where('id', '=', webhookId).executeTakeFirst(),
    deliveries: await app.db.selectFrom('webhook_delivery').selectAll().where('webhook_id', '=', webhookId).execute(),
    attempts: await app.db
      .selectFrom('webhook_attempt')
      .selectAll()
      .where('webhook_id', '=', webhookId)
      .orderBy('number')
      .execute(),
  });

  return { app, receiver, worker, say, register, attempts, states, settled, recordOf, http, servers };
}
