import { expect, onTestFinished, test } from 'vitest';
import { createAlertEvaluation } from '#delivery/alerts/index.ts';
import { RULE_REPORT } from '#delivery/alerts/queries.ts';
import { editOf, ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app);
const { receiver, evaluate, worker, failedApplication, setState, messagesOf } = useAlerts(app);

/** An application whose deployment has failed, with a rule that watches it. */
async function watched(changes: object = {}, receiverChanges: object = {}) {
  const made = await failedApplication();
  const { texts, id: receiverId } = await receiver(made.admin, () => 200, receiverChanges);
  const target = { target_type: 'APPLICATION', target_id: made.id };
  const body = ruleBody(made.admin, made.clusterId, target, [receiverId], changes);
  const { id: ruleId } = ok(await made.admin.post('/alert-rules', body), 201);
  const read = async () => ok(await made.admin.get(`/alert-rules/${ruleId}`), 200);
  return { ...made, texts, receiverId, body, ruleId: ruleId as string, read };
}

test('rules are evaluated when they are due, and one that throws keeps no other one from it', async () => {
  const [broken, sound] = [await watched(), await watched()];
  await sql`update alert_rule set condition = '{"kind": "BUILT", "promql": "nonsense"}' where id = ${broken.ruleId}`.execute(
    app.db,
  );
  const loop = createAlertEvaluation(app.platform, newId(), 20);
  onTestFinished(() => loop.stop());
  loop.start();
  await expect.poll(() => messagesOf(sound.admin)).toHaveLength(1);
  await expect.poll(async () => (await broken.read()).problem).toContain('internal error');
  expect((await broken.read()).state).toBe('UNDEPLOYED');
  expect(await RULE_REPORT.status(app.db)).toMatchObject({ retried: 1, lastFailure: { error: expect.any(String) } });
  const { rows } = await sql<{
    due: Date;
  }>`update alert_rule set next_at = now() - interval '3 seconds', evaluated_at = null
    where id = ${sound.ruleId} returning next_at as due`.execute(app.db);
  // The time of an evaluation follows from the one before, however late that began.
  const evaluated = app.db
    .selectFrom('alert_rule')
    .select('next_at')
    .where('id', '=', sound.ruleId)
    .where('evaluated_at', 'is not', null);
  const next = async () => (await evaluated.executeTakeFirst())?.next_at;
  await expect.poll(next).toBeDefined();
  expect(((await next())!.getTime() - rows[0]!.due.getTime()) % 15_000).toBe(0);
});

test('nothing ends because the history of a service is removed', async () => {
  const { admin, id, read, fail } = await watched();
  await evaluate();
  await sql`delete from deployment_service where service_id = ${id}`.execute(app.db);
  await evaluate();
  expect(await messagesOf(admin)).toMatchObject([{ content: { firing: [{ id }], resolved: [] } }]);
  expect((await read()).starts_at).toBeDefined();
  await fail();
  await evaluate();
  await setState(id, 'DEPLOYED');
  await evaluate();
  expect(await messagesOf(admin)).toMatchObject([{ content: { firing: [], resolved: [{ id }] } }]);
  expect((await read()).state).toBe('OK');
});

test('a receiver that is added is told what fires, and one that is removed gets nothing more', async () => {
  const { admin, id, body, ruleId, receiverId, read } = await watched();
  await evaluate();
  const { id: later } = await receiver(admin);
  ok(await admin.put(`/alert-rules/${ruleId}`, { ...editOf(body), alert_receiver_ids: [later] }), 200);
  expect((await read()).state).toBe('PENDING_NOTIFICATION');
  expect(await messagesOf(admin)).toEqual([]);
  await evaluate();
  await evaluate();
  expect(await messagesOf(admin)).toMatchObject([{ receiver_id: later, content: { firing: [{ id }] } }]);
  ok(await admin.put(`/alert-rules/${ruleId}`, { ...editOf(body), alert_receiver_ids: [receiverId, later] }), 200);
  await setState(id, 'DEPLOYED');
  await evaluate();
  // The first receiver came back too late to hear of the beginning.
  expect(await messagesOf(admin)).toMatchObject([{ receiver_id: later, content: { firing: [], resolved: [{ id }] } }]);
});

test('a service that breaks and is mended while messages wait is told once, with both times', async () => {
  const { admin, id, texts } = await watched();
  for (const state of ['DEPLOYED', 'DEPLOYMENT_ERROR', 'DEPLOYED']) {
    await evaluate();
    await setState(id, state);
  }
  await evaluate();
  expect(await messagesOf(admin)).toHaveLength(1);
  worker();
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d UTC`;
  await expect
    .poll(() => texts)
    .toEqual([expect.stringMatching(new RegExp(`^Resolved: .*, from ${time} to ${time}$`, 's'))]);
});

test('a condition that began before the rule was evaluated counts from its event', async () => {
  const { admin, id } = await watched({ for_duration: 'PT5M' });
  await sql`update deployment_service set ended_at = now() - interval '6 minutes' where service_id = ${id}`.execute(
    app.db,
  );
  await evaluate();
  expect(await messagesOf(admin)).toHaveLength(1);
});

test('a time in which nothing was evaluated counts for a duration only where no later event may have ended the condition', async () => {
  const { admin, id, ruleId } = await watched({ for_duration: 'PT5M' });
  await evaluate();
  const afterOutage = async (event: string) => {
    await sql`update alert_incident set since = now() - interval '1 hour' where rule_id = ${ruleId}`.execute(app.db);
    await sql`update alert_rule set evaluated_at = now() - interval '50 minutes' where id = ${ruleId}`.execute(app.db);
    await sql`update deployment_service set ended_at = now() - ${event}::interval where service_id = ${id}`.execute(
      app.db,
    );
    await evaluate();
  };
  await afterOutage('1 minute');
  expect(await messagesOf(admin)).toEqual([]);
  await afterOutage('2 hours');
  expect(await messagesOf(admin)).toHaveLength(1);
});

test.each([
  ['MEDIUM', 'HIGH', 1],
  ['HIGH', 'HIGH', 1],
  ['CRITICAL', 'HIGH', 0],
  [null, 'LOW', 1],
  ['high', 'HIGH', 1],
  ['critical', 'HIGH', 0],
  [' Critical ', 'CRITICAL', 1],
  ['page the on-call', 'LOW', 1],
  ['', 'LOW', 1],
])('a receiver of severity %s gets of a rule of severity %s this many messages: %i', async (least, severity, count) => {
  const { admin, read, receiverId } = await watched({ severity }, { severity: least });
  await evaluate();
  const { severity: answered } = ok(await admin.get(`/alert-receivers/${receiverId}`), 200);
  expect(answered).toBe(least);
  expect(await messagesOf(admin)).toHaveLength(count);
  expect((await read()).state).toBe(count === 1 ? 'PENDING_NOTIFICATION' : 'UNROUTED');
  expect((await read()).problem).toEqual(count === 1 ? null : expect.stringContaining('severity'));
});

test('a rule that is disabled is not known to be well once it is enabled again', async () => {
  const { admin, body, ruleId, read } = await watched();
  await evaluate();
  ok(await admin.put(`/alert-rules/${ruleId}`, { ...editOf(body), enabled: false }), 200);
  expect((await read()).state).toBe('SUPPRESSED');
  ok(await admin.put(`/alert-rules/${ruleId}`, editOf(body)), 200);
  expect(await read()).toMatchObject({ state: 'UNDEPLOYED', is_up_to_date: false });
});

test('an alert of a certificate outlasts an unknown end of that certificate, and no other unknown end', async () => {
  const condition = { kind: 'BUILT', promql: 'certificate_days_left', operator: 'BELOW', threshold: 14 };
  const { admin, id, read } = await watched({ condition });
  const state = async () => {
    await evaluate();
    return (await read()).starts_at === undefined ? 'over' : 'fires';
  };
  const addDomain = (domain: string, days: number | null) =>
    sql`insert into custom_domain (id, organization_id, service_id, domain, generate_certificate, challenge, certificate_state, certificate_expires_at)
      values (${newId()}, ${admin.organizationId}, ${id}, ${domain}, true, 'c', 'ISSUED', now() + make_interval(days => ${days}::integer))`.execute(
      app.db,
    );
  const change = (domain: string, values: object) =>
    app.db.updateTable('custom_domain').set(values).where('service_id', '=', id).where('domain', '=', domain).execute();
  const [unknown, late, sound] = [null, new Date(Date.now() + 86_400_000), new Date(Date.now() + 90 * 86_400_000)];
  await addDomain('late.example.com', 1);
  await addDomain('new.example.com', null);
  expect(await state()).toBe('fires');
  await change('late.example.com', { certificate_expires_at: unknown });
  expect(await state()).toBe('fires');
  await change('late.example.com', { certificate_expires_at: sound });
  expect(await state()).toBe('over');
  const withoutCertificate = [{ generate_certificate: false }, { certificate_state: 'UNSUPPORTED' }];
  for (const values of withoutCertificate) {
    const proven = { generate_certificate: true, certificate_state: 'ISSUED' };
    await change('late.example.com', { ...proven, certificate_expires_at: late });
    expect(await state()).toBe('fires');
    await change('late.example.com', { certificate_expires_at: unknown, ...values });
    expect(await state()).toBe('over');
  }
  // The end of a certificate that is not obtained any more is the last one that was known.
  await change('late.example.com', { generate_certificate: false, certificate_expires_at: late });
  expect(await state()).toBe('over');
});

test('an evaluation whose statement takes too long is broken off', { timeout: 60_000 }, async () => {
  const { admin } = await watched();
  // Below the time for locks, so that the deadline of statements is what ends the wait.
  await app.db.transaction().execute(async (db) => {
    await sql`lock table deployment_service in access exclusive mode`.execute(db);
    await expect(evaluate()).rejects.toMatchObject({ code: '57014' });
  });
  await evaluate();
  expect(await messagesOf(admin)).toHaveLength(1);
});

test('an edit that watches the same, however it is written, forgets nothing', async () => {
  const { admin, body, ruleId, read } = await watched({ for_duration: 'PT60S' });
  await sql`update deployment_service set ended_at = now() - interval '2 minutes'
    where organization_id = ${admin.organizationId}`.execute(app.db);
  await evaluate();
  const same = { for_duration: 'PT1M', condition: { ...body.condition, threshold: 0, operator: 'NONE' } };
  ok(await admin.put(`/alert-rules/${ruleId}`, { ...editOf(body), ...same }), 200);
  expect(await read()).toMatchObject({ state: 'PENDING_NOTIFICATION' });
  expect(await messagesOf(admin)).toHaveLength(1);
});
