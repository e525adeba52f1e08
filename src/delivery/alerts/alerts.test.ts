import { describe, expect, test } from 'vitest';
import { editOf, ruleBody, useAlerts } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { openDatabase, sql } from '#platform/database/index.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app);
const { receiver, evaluate, worker, failedApplication, setState, messagesOf } = useAlerts(app);

test('a failed deployment is told once, and its end once a deployment succeeds', { timeout: 60_000 }, async () => {
  const { admin, id, clusterId, succeed } = await failedApplication();
  const { texts, id: receiverId } = await receiver(admin);
  const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
  const rule = ok(await admin.post('/alert-rules', body), 201);
  expect(rule.state).toBe('UNDEPLOYED');
  worker();
  await evaluate();
  await evaluate();
  await expect
    .poll(() => texts)
    .toEqual([expect.stringMatching(/^HIGH: deployments\nTrue of these services: its last/)]);
  const state = async () => ok(await admin.get(`/alert-rules/${rule.id}`), 200).state;
  await expect.poll(state).toBe('NOTIFIED');
  await succeed();
  await evaluate();
  await evaluate();
  await expect.poll(() => texts.slice(1)).toEqual([expect.stringMatching(/^Resolved: deployments\n/)]);
  expect(await state()).toBe('OK');
  expect(await messagesOf(admin)).toHaveLength(2);
});

describe('a rule', () => {
  test('tells of many services of an environment in one message, without mentions, links or markup of their names', async () => {
    const { admin, id, environmentId, clusterId } = await failedApplication();
    const { texts, id: receiverId } = await receiver(admin);
    const name = '<!channel> @here https://evil.example *x*';
    await sql`update service set name = ${name} where id = ${id}`.execute(app.db);
    const target = { target_type: 'ENVIRONMENT', target_id: environmentId };
    const other = ok(
      await admin.post(`/environment/${environmentId}/application`, {
        name: 'second',
        git_repository: { url: 'https://git.invalid/a.git', branch: 'main' },
        dockerfile_path: 'Dockerfile',
      }),
      201,
    );
    await sql`insert into deployment_service select deployment_id, organization_id, environment_id, number, ${other.id}::uuid, kind, 'second', icon_uri,
      stage_id, stage_name, stage_position, action, sub_action, state, commit, details, error, started_at, ended_at
      from deployment_service where service_id = ${id}`.execute(app.db);
    ok(await admin.post('/alert-rules', ruleBody(admin, clusterId, target, [receiverId])), 201);
    worker();
    await evaluate();
    await expect.poll(() => texts.length).toBe(1);
    expect(texts[0]).toContain('second');
    expect(texts[0]).toContain('&lt;!channel&gt;');
    for (const active of ['<!', '@here', 'https://', 'evil.example', ' *x']) expect(texts[0]).not.toContain(active);
  });

  test('waits until its condition has held for its duration', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { id: receiverId } = await receiver(admin);
    const target = { target_type: 'APPLICATION', target_id: id };
    const body = ruleBody(admin, clusterId, target, [receiverId], { for_duration: 'PT5M' });
    const rule = ok(await admin.post('/alert-rules', body), 201);
    await evaluate();
    expect(await messagesOf(admin)).toEqual([]);
    expect(ok(await admin.get(`/alert-rules/${rule.id}`), 200).state).toBe('TRIGGERED');
    await sql`update alert_incident set since = since - interval '5 minutes'`.execute(app.db);
    await evaluate();
    expect(await messagesOf(admin)).toMatchObject([{ content: { firing: [{ id }], resolved: [] } }]);
    expect(ok(await admin.get(`/alert-rules/${rule.id}`), 200).state).toBe('PENDING_NOTIFICATION');
  });

  test('that is disabled is silent and forgets what it has found', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { id: receiverId } = await receiver(admin);
    const target = { target_type: 'APPLICATION', target_id: id };
    const body = ruleBody(admin, clusterId, target, [receiverId]);
    const rule = ok(await admin.post('/alert-rules', body), 201);
    await evaluate();
    expect(await messagesOf(admin)).toHaveLength(1);
    expect(ok(await admin.put(`/alert-rules/${rule.id}`, { ...editOf(body), enabled: false }), 200).state).toBe(
      'SUPPRESSED',
    );
    await evaluate();
    expect(await messagesOf(admin)).toEqual([]);
  });

  test('whose token is over is not evaluated, says why, and goes on once it is saved again', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { id: receiverId } = await receiver(admin);
    const writer = await admin.withScope('WRITE');
    const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
    const rule = ok(await writer.post('/alert-rules', body), 201);
    await sql`update api_token set scope = 'READ' where id = (select set_with from alert_rule where id = ${rule.id})`.execute(
      app.db,
    );
    await evaluate();
    expect(await messagesOf(admin)).toEqual([]);
    expect(ok(await admin.get(`/alert-rules/${rule.id}`), 200).problem).toContain('must save it again');
    expect(ok(await admin.put(`/alert-rules/${rule.id}`, editOf(body)), 200).problem).toBeNull();
    await evaluate();
    expect(await messagesOf(admin)).toHaveLength(1);
  });
});

describe('a message', () => {
  test('is sent again until the receiver takes it, under the same id, and before the end of its alert', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { texts, ids, id: receiverId } = await receiver(admin, (number) => (number === 1 ? 500 : 200));
    const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
    ok(await admin.post('/alert-rules', body), 201);
    await evaluate();
    worker({ scheduleMs: [1_000] });
    await expect.poll(() => texts).toHaveLength(1);
    await setState(id, 'DEPLOYED');
    await evaluate();
    await expect.poll(() => texts.map((text) => text.split(':')[0])).toEqual(['HIGH', 'HIGH', 'Resolved']);
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    await expect.poll(async () => ok(await admin.get(`/alert-receivers/${receiverId}`), 200).delivery_error).toBeNull();
  });

  test('that no attempt brings to its receiver is given up, which rule and receiver say without the URL', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { id: receiverId } = await receiver(admin, () => 404);
    const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
    const rule = ok(await admin.post('/alert-rules', body), 201);
    await evaluate();
    worker();
    const read = async () => ok(await admin.get(`/alert-rules/${rule.id}`), 200);
    await expect.poll(async () => (await read()).state).toBe('UNROUTED');
    expect((await read()).problem).toBe('on call: The receiver answered 404. The message was given up after 3 tries.');
    const shown = ok(await admin.get(`/alert-receivers/${receiverId}`), 200);
    expect(shown.delivery_error).toBe('The receiver answered 404. The message was given up after 3 tries.');
  });

  test('is neither lost nor doubled by an evaluation that is killed before any of its statements', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { id: receiverId } = await receiver(admin);
    const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
    ok(await admin.post('/alert-rules', body), 201);
    let deaths = 0;
    for (let n = 1; n < 60; n++) {
      let count = 0;
      let death: string | undefined;
      const dying = openDatabase({
        config: { ...app.databaseConfig, max: 1 },
        onStatement: (text) => {
          if (death === undefined && ++count === n) death = text;
          if (death !== undefined) throw new Error('The process was killed.');
        },
      });
      await evaluate({ ...app.platform, db: dying.db }).catch(() => undefined);
      await dying.close();
      if (death === undefined) break;
      deaths++;
      await evaluate();
      expect(await messagesOf(admin), death).toMatchObject([{ content: { firing: [{ id }], resolved: [] } }]);
      await sql`delete from alert_message`.execute(app.db);
      await sql`delete from alert_incident`.execute(app.db);
    }
    expect(deaths).toBeGreaterThan(5);
  });

  test('whose worker is gone is sent by another one when the lease ends', async () => {
    const { admin, id, clusterId } = await failedApplication();
    const { texts, id: receiverId } = await receiver(admin);
    const body = ruleBody(admin, clusterId, { target_type: 'APPLICATION', target_id: id }, [receiverId]);
    ok(await admin.post('/alert-rules', body), 201);
    await evaluate();
    await sql`update alert_message set status = 'RUNNING', attempts = 1, claim_token = ${newId()},
      lease_until = now() - interval '1 second'`.execute(app.db);
    worker();
    await expect.poll(() => texts.length).toBe(1);
  });
});
