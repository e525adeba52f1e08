import { expect, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { ok } from '#test/harness/app.ts';
import { event, EVENTS, useWebhooks } from '#delivery/webhooks/webhooks.fixture.ts';

const { app, receiver, worker, say, register, attempts, states, settled, recordOf, http } = useWebhooks();

const isPast = async (time: Date) =>
  (await sql<{ past: boolean }>`select clock_timestamp() > ${time} as past`.execute(app.db)).rows[0]!.past;

/** Registers a webhook whose receiver answers its first call when the test says so, and publishes one event. */
async function callUnderWay() {
  const admin = await app.organization();
  const answer = Promise.withResolvers<number>();
  const { calls, url } = await receiver((_call, number) => (number === 1 ? answer.promise : 200));
  const webhook = await register(admin, url);
  await say(admin, event(admin));
  return { admin, calls, url, webhook, answer: answer.resolve };
}

test('a call that takes longer than a lease is made once, beside other workers', async () => {
  const { admin, calls, webhook, answer } = await callUnderWay();
  worker({ lease: 1500 });
  await expect.poll(() => calls.length).toBe(1);
  worker({ lease: 1500 });
  const [claimed] = (await recordOf(webhook.id)).deliveries;
  await expect.poll(() => isPast(new Date(claimed!.next_attempt_at.getTime() + 300))).toBe(true);
  answer(200);
  await settled(webhook.id, 'DELIVERED');
  expect(calls).toHaveLength(1);
  expect(await attempts(admin, webhook.id)).toMatchObject([{ attempt: 1, target_response_status_code: 200 }]);
});

test('a process whose lease ended while it did nothing calls no receiver', async () => {
  const { admin, calls, webhook, answer } = await callUnderWay();
  answer(200);
  let requests = 0;
  const frozen: HttpClient = {
    ...http,
    request: (...call) => {
      if (++requests > 1) return http.request(...call);
      const now = performance.now();
      const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 700);
      try {
        return http.request(...call);
      } finally {
        clock.mockRestore();
      }
    },
  };
  worker({ lease: 1000 }, frozen);
  await settled(webhook.id, 'DELIVERED');
  expect([requests, calls.length]).toEqual([2, 1]);
  expect((await attempts(admin, webhook.id)).map((one) => [one.attempt, one.target_response_status_code])).toEqual([
    [2, 200],
    [1, 0],
  ]);
});

test.each([200, 500])('an answer %i that comes after the claim was lost changes nothing', async (status) => {
  const { calls, webhook, answer } = await callUnderWay();
  const delivery = worker({ grace: 60_000 });
  await expect.poll(() => calls.length).toBe(1);
  await sql`update webhook_delivery set claim_token = ${newId()}, next_attempt_at = now() + interval '1 minute'
    where webhook_id = ${webhook.id}`.execute(app.db);
  const before = await recordOf(webhook.id);
  answer(status);
  await delivery.stop();
  expect(await recordOf(webhook.id)).toEqual(before);
});

test('a stop gives a delivery back at once, and its attempt says why', async () => {
  const { admin, calls, webhook } = await callUnderWay();
  const delivery = worker();
  await expect.poll(() => calls.length).toBe(1);
  await delivery.stop();
  const [row] = (await recordOf(webhook.id)).deliveries;
  expect(row).toMatchObject({ state: 'PENDING', claim_token: null, tries: 0, attempts: 1 });
  expect(await isPast(row!.next_attempt_at)).toBe(true);
  expect(await attempts(admin, webhook.id)).toMatchObject([
    {
      target_response_status_code: 0,
      target_response_body: 'The process that made this call was stopped; it is made again.',
    },
  ]);
});

test('a receiver that answers soon after a stop began is called once', async () => {
  const { calls, webhook, answer } = await callUnderWay();
  const delivery = worker({ grace: 60_000 });
  await expect.poll(() => calls.length).toBe(1);
  const stopped = delivery.stop();
  answer(200);
  await stopped;
  expect(await states(webhook.id)).toEqual(['DELIVERED']);
  expect(calls).toHaveLength(1);
});

test('a delivery whose webhook was switched off during its call keeps its state, and can be sent again', async () => {
  const { admin, calls, url, webhook, answer } = await callUnderWay();
  const delivery = worker();
  await expect.poll(() => calls.length).toBe(1);
  const path = `/organization/${admin.organizationId}/webhook/${webhook.id}`;
  const hook = { target_url: url, events: EVENTS };
  ok(await admin.put(path, { ...hook, enabled: false }), 200);
  answer(200);
  await expect.poll(async () => (await attempts(admin, webhook.id)).length).toBe(1);
  expect(await states(webhook.id)).toEqual(['CANCELED']);
  ok(await admin.put(path, { ...hook, enabled: true }), 200);
  const [attempt] = await attempts(admin, webhook.id);
  ok(await admin.post(`${path}/event/${attempt.id}/resend`), 200);
  delivery.nudge();
  await settled(webhook.id, 'DELIVERED');
  expect(calls).toHaveLength(2);
});
