import { expect, test } from 'vitest';
import { CONTENT, ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { expireMessages, removeOldMessages } from '#delivery/alerts/message-queries.ts';
import { LONG_PAUSES, pausesOf } from '#delivery/receivers/pauses.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
const { receiver, worker } = useAlerts(app);

/** Creates a rule for a receiver. */
async function ruleFor(admin: Actor, receiverId: string): Promise<string> {
  const { environment, application } = await makeExample(admin);
  const target = { target_type: 'APPLICATION', target_id: application.id as string };
  return ok(await admin.post('/alert-rules', ruleBody(admin, environment.cluster_id, target, [receiverId])), 201).id;
}

/** Copies a rule. A receiver gets the messages of one rule one by one, and those of several at the same time. */
const copyRule = async (ruleId: string, times: number) => {
  await sql`insert into alert_rule select (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).*
    from alert_rule r, generate_series(1, ${times}) where r.id = ${ruleId}`.execute(app.db);
};

/** Stores one message of each rule of an organization for a receiver. */
const storeMessages = (admin: Actor, receiverId: string) =>
  sql`insert into alert_message (id, organization_id, rule_id, receiver_id, content)
    select gen_random_uuid(), organization_id, id, ${receiverId}, ${JSON.stringify(CONTENT)}::jsonb from alert_rule
    where organization_id = ${admin.organizationId}`.execute(app.db);

const messagesTo = (receiverId: string) =>
  app.db
    .selectFrom('alert_message')
    .select(['status', 'error', 'attempts', 'tries'])
    .where('receiver_id', '=', receiverId)
    .orderBy('number')
    .execute();

test('a receiver that does not answer holds up the messages of no other one', async () => {
  const [admin, neighbour] = [await app.organization(), await app.organization()];
  const [slow, quick] = [await receiver(admin, () => 'hold'), await receiver(neighbour)];
  await copyRule(await ruleFor(admin, slow.id), 100);
  await ruleFor(neighbour, quick.id);
  await storeMessages(admin, slow.id);
  worker();
  await expect.poll(() => slow.texts.length).toBeGreaterThanOrEqual(8);
  await storeMessages(neighbour, quick.id);
  await expect.poll(() => quick.texts).toHaveLength(1);
  expect(slow.texts.length).toBeLessThan(20);
});

test('a receiver that fails one call after the other is left alone, asked once after each pause, and gets its messages once it is back', async () => {
  const [admin, neighbour] = [await app.organization(), await app.organization()];
  let isBack = false;
  const { id, texts } = await receiver(admin, () => (isBack ? 200 : 503));
  const other = await receiver(neighbour);
  await copyRule(await ruleFor(admin, id), 20);
  await ruleFor(neighbour, other.id);
  await storeMessages(admin, id);
  const pauses = pausesOf(app.db, 'alert_receiver', id);
  worker({ breaker: LONG_PAUSES, scheduleMs: Array<number>(1000).fill(1) });
  let before = await pauses.begun();
  expect(before.failures).toBeGreaterThanOrEqual(10);
  for (let round = 1; round <= 2; round++) {
    // What is due at the paused receiver is older: a claim that took it would take it before the neighbour's.
    await storeMessages(neighbour, other.id);
    await expect.poll(() => other.texts).toHaveLength(round);
    expect(await pauses.counts()).toEqual(before);
    await pauses.end();
    const after = await pauses.begun();
    expect(after).toEqual({ failures: before.failures + 1, attempts: before.attempts + 1 });
    before = after;
  }
  expect(texts).toHaveLength(before.attempts);
  isBack = true;
  await pauses.end();
  await expect
    .poll(async () => new Set((await messagesTo(id)).map(({ status, error }) => `${status} ${error}`)))
    .toEqual(new Set(['ENDED null']));
  const paused = app.db.selectFrom('alert_receiver').select(['failures', 'paused_until']).where('id', '=', id);
  await expect.poll(() => paused.executeTakeFirst()).toEqual({ failures: 0, paused_until: null });
});

test('a message is given up after the calls of the schedule, whatever processes ended in between', async () => {
  const admin = await app.organization();
  const { id, texts } = await receiver(admin, () => 500);
  await ruleFor(admin, id);
  await storeMessages(admin, id);
  await sql`update alert_message set status = 'RUNNING', attempts = 5, claim_token = ${newId()},
    lease_until = now() - interval '1 second'`.execute(app.db);
  worker();
  await expect.poll(async () => (await messagesTo(id))[0]!.status).toBe('ENDED');
  expect(texts).toHaveLength(3);
  expect(await messagesTo(id)).toEqual([
    {
      status: 'ENDED',
      attempts: 8,
      tries: 3,
      error: 'The receiver answered 500. The message was given up after 3 tries.',
    },
  ]);
});

test('a message that cannot be sent for a day is given up, which its rule and receiver tell', async () => {
  const admin = await app.organization();
  const { id, texts } = await receiver(admin);
  const ruleId = await ruleFor(admin, id);
  await storeMessages(admin, id);
  await sql`update alert_message set created_at = now() - interval '23 hours'`.execute(app.db);
  await expireMessages(app.db);
  expect(await messagesTo(id)).toMatchObject([{ status: 'WAITING' }]);
  await sql`update alert_message set created_at = now() - interval '25 hours'`.execute(app.db);
  await expireMessages(app.db);
  expect(await messagesTo(id)).toMatchObject([{ status: 'ENDED', error: expect.stringContaining('24 hours') }]);
  expect(ok(await admin.get(`/alert-rules/${ruleId}`), 200).problem).toContain('24 hours');
  expect(ok(await admin.get(`/alert-receivers/${id}`), 200).delivery_error).toContain('24 hours');
  expect(texts).toEqual([]);
});

test('a message that ended more than 30 days ago is removed, and no other one', async () => {
  const admin = await app.organization();
  const { id } = await receiver(admin);
  const ruleId = await ruleFor(admin, id);
  await copyRule(ruleId, 3);
  await storeMessages(admin, id);
  const age = (number: number, days: number) =>
    sql`update alert_message set status = 'ENDED', ended_at = now() - make_interval(days => ${days})
      where id = (select id from alert_message where receiver_id = ${id} order by id offset ${number} limit 1)`.execute(
      app.db,
    );
  await age(0, 31);
  await age(1, 29);
  await sql`update alert_message set created_at = now() - interval '40 days' where receiver_id = ${id}`.execute(app.db);
  expect(await removeOldMessages(app.db)).toBe(1);
  expect((await messagesTo(id)).map(({ status }) => status).toSorted()).toEqual(['ENDED', 'WAITING', 'WAITING']);
});
