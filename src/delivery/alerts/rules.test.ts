import { expect, test } from 'vitest';
import { editOf, ruleBody } from '#delivery/alerts/alerts.fixture.ts';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const app = useApp();

/** An organization with an application, a receiver, and the body of a rule. */
async function prepared() {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  const receiver = {
    organization_id: admin.organizationId,
    name: 'on call',
    description: '',
    type: 'SLACK',
    send_resolved: true,
    webhook_url: 'https://slack.invalid/secret',
  };
  const { id: receiverId } = ok(await admin.post('/alert-receivers', receiver), 201);
  const target = { target_type: 'APPLICATION', target_id: application.id as string };
  const body = ruleBody(admin, environment.cluster_id, target, [receiverId]);
  return { admin, body, receiverId, environmentId: environment.id as string };
}

const rulesOf = async (admin: Actor) =>
  ok(await admin.get(`/organization/${admin.organizationId}/alert-rules`), 200).results;

test('a rule is answered as it was saved, edited and deleted, each with its event', async () => {
  const { admin, body } = await prepared();
  const rule = ok(await admin.post('/alert-rules', body), 201);
  expect(rule).toMatchObject({ ...body, source: 'MANAGED', state: 'UNDEPLOYED', is_up_to_date: false, problem: null });
  expect(await rulesOf(admin)).toEqual([rule]);
  const edited = ok(await admin.put(`/alert-rules/${rule.id}`, { ...editOf(body), name: 'renamed' }), 200);
  expect(edited).toMatchObject({ name: 'renamed', target: body.target });
  expect((await admin.delete(`/alert-rules/${rule.id}`)).status).toBe(204);
  expect((await admin.get(`/alert-rules/${rule.id}`)).status).toBe(404);
  const events = await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', rule.id).execute();
  expect(events.map((event) => [event.event_type, event.sub_target_type]).sort()).toEqual([
    ['CREATE', 'ALERT_RULE'],
    ['DELETE', 'ALERT_RULE'],
    ['UPDATE', 'ALERT_RULE'],
  ]);
});

test.each([
  [{ condition: { kind: 'CUSTOM', promql: 'up == 0' } }, 'condition.kind'],
  [{ condition: { kind: 'BUILT', promql: 'rate(http_requests[5m])' } }, 'condition.promql'],
  [{ condition: { kind: 'BUILT', promql: 'job_failed', function: 'AVG' } }, 'condition.function'],
  [{ condition: { kind: 'BUILT', promql: 'job_failed', operator: 'ABOVE' } }, 'condition.operator'],
  [{ condition: { kind: 'BUILT', promql: 'job_failed', threshold: 3 } }, 'condition.threshold'],
  [{ condition: { kind: 'BUILT', promql: 'certificate_days_left', operator: 'BELOW' } }, 'condition.threshold'],
  [{ condition: { kind: 'BUILT', promql: 'certificate_days_left', threshold: 14 } }, 'condition.operator'],
  [{ for_duration: '5 minutes' }, 'for_duration'],
  [{ for_duration: 'P8D' }, 'for_duration'],
  [{ for_duration: 'P2W' }, 'for_duration'],
  [{ for_duration: 'P1M' }, 'for_duration'],
  [{ for_duration: '-PT5M' }, 'for_duration'],
  [{ for_duration: 'PT0.5S' }, 'for_duration'],
  [{ presentation: { runbook_url: 'javascript:alert(1)' } }, 'presentation.runbook_url'],
  [{ alert_receiver_ids: [newId()] }, 'alert_receiver_ids.0'],
  [{ alert_receiver_ids: [] }, 'alert_receiver_ids'],
  [{ cluster_id: newId() }, 'cluster_id'],
  [
    { condition: { kind: 'BUILT', promql: 'certificate_days_left', operator: 'BELOW', threshold: -1 } },
    'condition.threshold',
  ],
  [{ condition: { kind: 'BUILT', promql: 'cpu_percent', threshold: 90 } }, 'condition.operator'],
  [{ condition: { kind: 'BUILT', promql: 'cpu_percent', operator: 'EQUAL', threshold: 90 } }, 'condition.operator'],
  [{ condition: { kind: 'BUILT', promql: 'cpu_percent', operator: 'ABOVE' } }, 'condition.threshold'],
  [{ condition: { kind: 'BUILT', promql: 'memory_percent', operator: 'ABOVE', threshold: -1 } }, 'condition.threshold'],
  [{ condition: { kind: 'BUILT', promql: 'restarts', operator: 'BELOW', threshold: 3 } }, 'condition.operator'],
  [{ condition: { kind: 'BUILT', promql: 'restarts', operator: 'ABOVE', threshold: 1001 } }, 'condition.threshold'],
  [{ condition: { kind: 'BUILT', promql: 'backup_age_hours', operator: 'ABOVE', threshold: 26 } }, 'condition.promql'],
  // Applications have no runs and no backups, and only clusters that are followed count instances.
  [{ condition: { kind: 'BUILT', promql: 'job_failed' } }, 'condition.promql'],
  [{ condition: { kind: 'BUILT', promql: 'backup_failed' } }, 'condition.promql'],
  [{ condition: { kind: 'BUILT', promql: 'service_not_ready' } }, 'condition.promql'],
  // A token, a machine and the queue are shared by services: no service has them alone.
  [{ condition: { kind: 'BUILT', promql: 'queue_stuck' } }, 'condition.promql'],
  [{ condition: { kind: 'BUILT', promql: 'queue_stuck', operator: 'ABOVE', threshold: 1 } }, 'condition.operator'],
  [
    { condition: { kind: 'BUILT', promql: 'deployments_waiting', operator: 'ABOVE', threshold: 1 } },
    'condition.promql',
  ],
  [
    { condition: { kind: 'BUILT', promql: 'deployments_waiting', operator: 'BELOW', threshold: 1 } },
    'condition.operator',
  ],
  [
    { condition: { kind: 'BUILT', promql: 'api_token_days_left', operator: 'BELOW', threshold: 14 } },
    'condition.promql',
  ],
  [
    { condition: { kind: 'BUILT', promql: 'git_token_days_left', operator: 'ABOVE', threshold: 14 } },
    'condition.operator',
  ],
  [
    { condition: { kind: 'BUILT', promql: 'disk_used_percent', operator: 'ABOVE', threshold: 100 } },
    'condition.threshold',
  ],
  [{ condition: { kind: 'BUILT', promql: 'copy_age_hours', operator: 'ABOVE' } }, 'condition.threshold'],
  [{ target: { target_type: 'APPLICATION', target_id: newId() } }, 'target.target_id'],
])('a rule that could not be evaluated or delivered is refused, and nothing is stored: %j', async (change, field) => {
  const { admin, body } = await prepared();
  expect(ok(await admin.post('/alert-rules', { ...body, ...change }), 400).errors[0].field).toBe(field);
  expect(await rulesOf(admin)).toEqual([]);
});

test.each([
  ['PT0S', 0],
  ['PT1H30M', 5_400],
  ['P6DT24H', 604_800],
  ['P1W', 604_800],
])('a duration of %s is answered as it was sent, and is %i seconds', async (duration, seconds) => {
  const { admin, body } = await prepared();
  const rule = ok(await admin.post('/alert-rules', { ...body, for_duration: duration }), 201);
  expect(rule.for_duration).toBe(duration);
  const stored = app.db.selectFrom('alert_rule').select('for_seconds').where('id', '=', rule.id);
  expect(await stored.executeTakeFirst()).toEqual({ for_seconds: seconds });
});

test('a runbook may have a long URL', async () => {
  const { admin, body } = await prepared();
  const presentation = { runbook_url: `https://wiki.example.com/${'a'.repeat(5_000)}` };
  expect(ok(await admin.post('/alert-rules', { ...body, presentation }), 201).presentation).toEqual(presentation);
});

test('a rule names its service, takes it back as it was answered, and refuses another one', async () => {
  const { admin, body, environmentId } = await prepared();
  const { target } = ok(await admin.post('/alert-rules', body), 201);
  const { target_id } = body.target;
  expect(target.service).toMatchObject({ id: target_id, name: 'hello', environment_id: environmentId });
  ok(await admin.post('/alert-rules', { ...body, target }), 201);
  const other = { ...target, service: { ...target.service, id: newId() } };
  expect(ok(await admin.post('/alert-rules', { ...body, target: other }), 400).errors[0].field).toBe(
    'target.service.id',
  );
});

test.each(['CLUSTER', ' CLUSTER'])('a cluster is taken as %j and answered as the interface spells it', async (type) => {
  const { admin, body } = await prepared();
  const target = { target_type: type, target_id: body.cluster_id };
  const made = ok(await admin.post('/alert-rules', { ...body, target }), 201);
  expect(made.target).toEqual({ target_type: ' CLUSTER', target_id: body.cluster_id });
  expect((await rulesOf(admin))[0].target).toEqual(made.target);
});

test('an edit to a condition that the target can never fulfil is refused, and says which ones it can', async () => {
  const { admin, body } = await prepared();
  const rule = ok(await admin.post('/alert-rules', body), 201);
  const condition = { kind: 'BUILT', promql: 'job_failed' };
  const { errors } = ok(await admin.put(`/alert-rules/${rule.id}`, { ...editOf(body), condition }), 400);
  expect(errors[0].message).toContain(
    'must be one of deployment_failed, certificate_days_left, cpu_percent, memory_percent, restarts, requests_per_second, error_percent, latency_p95_ms for a target of type APPLICATION',
  );
  const expired = { kind: 'BUILT', promql: 'certificate_days_left', operator: 'BELOW', threshold: 0 };
  ok(await admin.put(`/alert-rules/${rule.id}`, { ...editOf(body), condition: expired }), 200);
});

const SHARED = {
  fake: [
    'api_token_days_left',
    'git_token_days_left',
    'disk_used_percent',
    'deployments_waiting',
    'deployment_waiting_seconds',
    'queue_stuck',
  ],
  kubernetes: [
    'api_token_days_left',
    'git_token_days_left',
    'cluster_credentials_days_left',
    'deployments_waiting',
    'deployment_waiting_seconds',
    'queue_stuck',
  ],
};

test.each([
  ['CLUSTER', 'fake', SHARED.fake],
  ['CLUSTER', 'kubernetes', SHARED.kubernetes],
  ['ENVIRONMENT', 'fake', ['deployments_waiting', 'deployment_waiting_seconds']],
])(
  'of what services share, a %s on %s takes these conditions, and a refusal names them',
  async (type, runtime, names) => {
    await app.organization();
    const { admin, body, environmentId } = await prepared();
    await app.db.updateTable('cluster').set({ runtime }).where('id', '=', body.cluster_id).execute();
    const target = { target_type: type, target_id: type === 'CLUSTER' ? body.cluster_id : environmentId };
    const all = [...new Set([...SHARED.fake, ...SHARED.kubernetes, 'copy_age_hours', 'copy_check_age_days'])];
    for (const promql of all) {
      const number = { operator: promql.endsWith('days_left') ? 'BELOW' : 'ABOVE', threshold: 14 };
      const condition = { kind: 'BUILT', promql, ...(promql === 'queue_stuck' ? {} : number) };
      const answer = await admin.post('/alert-rules', { ...body, target, condition });
      if (names.includes(promql)) ok(answer, 201);
      else {
        const [choices] = ok(answer, 400).errors[0].message.split(' for a target of type ');
        expect(all.filter((name) => choices.split(/[, ]+/).includes(name)).sort()).toEqual([...names].sort());
      }
    }
  },
);

test('a rule is saved by writers of its organization only, on targets and receivers of that organization', async () => {
  const [{ admin, body }, other] = [await prepared(), await prepared()];
  const { id } = ok(await admin.post('/alert-rules', body), 201);
  const [url, reader, stranger] = [`/alert-rules/${id}`, await admin.withScope('READ'), other.admin];
  expect((await reader.post('/alert-rules', body)).status).toBe(403);
  expect((await reader.put(url, editOf(body))).status).toBe(403);
  expect((await reader.delete(url)).status).toBe(403);
  ok(await reader.get(url), 200);
  expect(ok(await stranger.post('/alert-rules', body), 400).errors[0].field).toBe('organization_id');
  expect((await stranger.get(url)).status).toBe(404);
  expect((await stranger.put(url, editOf(body))).status).toBe(404);
  expect((await stranger.delete(url)).status).toBe(404);
  const foreign: [object, string][] = [
    [{ target: other.body.target }, 'target.target_id'],
    [{ alert_receiver_ids: [other.receiverId] }, 'alert_receiver_ids.0'],
  ];
  for (const [change, field] of foreign)
    expect(ok(await admin.post('/alert-rules', { ...body, ...change }), 400).errors[0].field).toBe(field);
  expect(await rulesOf(admin)).toHaveLength(1);
  expect(await rulesOf(stranger)).toEqual([]);
});
