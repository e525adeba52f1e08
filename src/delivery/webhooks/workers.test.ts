import { spawn } from 'node:child_process';
import path from 'node:path';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { expireDeliveries, removeOldDeliveries } from '#delivery/webhooks/retention.ts';
import { LONG_PAUSES, pausesOf } from '#delivery/receivers/pauses.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok } from '#test/harness/app.ts';
import { event, EVENTS, useWebhooks } from '#delivery/webhooks/webhooks.fixture.ts';

const { app, receiver, worker, say, register, attempts, states, settled, recordOf } = useWebhooks();

/** Starts a process that delivers webhooks. */
async function startProcess(times: object) {
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(app.db);
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'worker.fixture.ts')], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  child.stdin.end(JSON.stringify({ config: { ...inject('postgres'), database: rows[0]!.name }, times }));
  return { child, ended };
}

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
      timeout: 40_000,
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
    await vi.waitFor(() => expect(slow.calls.length).toBeGreaterThanOrEqual(8), 40_000);
    const webhook = await register(admin, quick.url);
    await say(admin, event(admin));
    delivery.nudge();
    await settled(webhook.id, 'DELIVERED');
    expect(slow.calls.length).toBeLessThan(20);
    expect(new Set(await states(held.id))).toEqual(new Set(['PENDING']));
  });

  test('leave a receiver alone that fails one call after the other, ask it once when its pause is over, and go on when it is back', async () => {
    const [admin, neighbour] = [await app.organization(), await app.organization()];
    let isBack = false;
    const { url, calls } = await receiver(() => (isBack ? 200 : 503));
    const other = await receiver();
    const webhook = await register(admin, url);
    await register(neighbour, other.url);
    await say(admin, ...Array.from({ length: 40 }, () => event(admin)));
    const pauses = pausesOf(app.db, 'webhook', webhook.id);
    const delivery = worker({ breaker: LONG_PAUSES, schedule: Array<number>(1000).fill(1) });
    let before = await pauses.begun();
    expect(before.failures).toBeGreaterThanOrEqual(10);
    for (let round = 1; round <= 2; round++) {
      // What is due at the paused receiver is older: a claim that took it would take it before the neighbour's.
      await say(neighbour, event(neighbour));
      delivery.nudge();
      await expect.poll(() => other.calls).toHaveLength(round);
      expect(await pauses.counts()).toEqual(before);
      await pauses.end();
      const after = await pauses.begun();
      expect(after).toEqual({ failures: before.failures + 1, attempts: before.attempts + 1 });
      before = after;
    }
    expect(calls).toHaveLength(before.attempts);
    expect(new Set(await states(webhook.id))).toEqual(new Set(['PENDING']));
    isBack = true;
    await pauses.end();
    await expect.poll(async () => new Set(await states(webhook.id))).toEqual(new Set(['DELIVERED']));
    const paused = app.db.selectFrom('webhook').select(['failures', 'paused_until']).where('id', '=', webhook.id);
    await expect.poll(() => paused.executeTakeFirst()).toEqual({ failures: 0, paused_until: null });
  });

  test('give up what could not be delivered for a day, and leave what is younger or under way', async () => {
    const admin = await app.organization();
    const { url } = await receiver(() => 'hold');
    const webhook = await register(admin, url);
    await say(admin, event(admin), event(admin), event(admin));
    const first = worker({ timeout: 60_000, lease: 60_000 });
    await vi.waitFor(async () => expect(await states(webhook.id)).toHaveLength(3), 40_000);
    await first.stop();
    const rows = await app.db
      .selectFrom('webhook_delivery')
      .select('id')
      .where('webhook_id', '=', webhook.id)
      .execute();
    const age = (id: string, hours: number, token: string | null) =>
      sql`update webhook_delivery set created_at = now() - make_interval(hours => ${hours}), claim_token = ${token} where id = ${id}`.execute(
        app.db,
      );
    await age(rows[0]!.id, 25, null);
    await age(rows[1]!.id, 25, newId());
    await age(rows[2]!.id, 23, null);
    expect(await expireDeliveries(app.platform)).toBe(1);
    const state = async (place: number) =>
      (
        await app.db
          .selectFrom('webhook_delivery')
          .select('state')
          .where('id', '=', rows[place]!.id)
          .executeTakeFirstOrThrow()
      ).state;
    expect([await state(0), await state(1), await state(2)]).toEqual(['FAILED', 'PENDING', 'PENDING']);
  });

  test('that are killed in the middle of a call lose nothing: another makes it again under the same id', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 'hold' : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const { child, ended } = await startProcess({ lease: 1000 });
    await vi.waitFor(() => expect(calls).toHaveLength(1), { timeout: 40_000 });
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

  test('that were frozen for longer than a lease write nothing about the call that another has made again', async () => {
    const admin = await app.organization();
    const late = Promise.withResolvers<number>();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? late.promise : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const { child, ended } = await startProcess({ lease: 2000 });
    await vi.waitFor(() => expect(calls).toHaveLength(1), { timeout: 40_000 });
    child.kill('SIGSTOP');
    const heir = worker();
    await settled(webhook.id, 'DELIVERED');
    await heir.stop();
    const before = await recordOf(webhook.id);
    // It finds the answer when it wakes.
    late.resolve(500);
    child.kill('SIGCONT');
    // It goes on working, with another delivery.
    const other = await register(admin, url);
    await say(admin, event(admin));
    await settled(other.id, 'DELIVERED');
    await expect.poll(() => calls).toHaveLength(4);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    const after = await recordOf(webhook.id);
    expect(after.webhook).toEqual(before.webhook);
    expect(after.deliveries).toEqual(expect.arrayContaining(before.deliveries));
    expect(after.attempts).toEqual(expect.arrayContaining(before.attempts));
    expect(before.attempts.map(({ status_code }) => status_code)).toEqual([0, 200]);
    expect(calls).toHaveLength(4);
  });

  test('that are stopped give back what is under way, and it does not count as a try', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 'hold' : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const first = worker();
    await vi.waitFor(() => expect(calls).toHaveLength(1), 40_000);
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
    await vi.waitFor(() => expect(calls).toHaveLength(2), 40_000);
    ok(await admin.delete(`/organization/${admin.organizationId}/webhook/${deleted.id}`), 204);
    ok(
      await admin.put(`/organization/${admin.organizationId}/webhook/${off.id}`, {
        target_url: url,
        events: EVENTS,
        enabled: false,
      }),
      200,
    );
    await vi.waitFor(async () => expect(await attempts(admin, off.id)).toHaveLength(1), { timeout: 40_000 });
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
