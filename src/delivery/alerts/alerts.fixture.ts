import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { afterEach, expect } from 'vitest';
import { createAlertDelivery, type AlertDeliveryOptions } from '#delivery/alerts/index.ts';
import { evaluateRule } from '#delivery/alerts/evaluate.ts';
import { claimRules } from '#delivery/alerts/queries.ts';
import { newId } from '#kernel/ids.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { createMailClient } from '#platform/mail-client/index.ts';
import { sql } from '#platform/database/index.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

const QUICK = {
  pollMs: 20,
  scheduleMs: [10, 10],
  graceMs: 50,
  breaker: { failures: 1000, pauseMs: 1, longestPauseMs: 1 },
};

/** Rules, receivers in this process, and workers that send messages; all of it ends with each test. */
export function useAlerts(app: TestApp) {
  const servers: Server[] = [];
  const workers: ReturnType<typeof createAlertDelivery>[] = [];
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()));
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    await app.db.deleteFrom('alert_rule').execute();
  });

  /** Starts a receiver that keeps the texts and ids that it is sent; `status` gives its answer, or `hold` for none at all. */
  async function receiver(admin: Actor, status: (number: number) => number | 'hold' = () => 200, changes: object = {}) {
    const texts: string[] = [];
    const ids: string[] = [];
    const server = createServer(async (request, response) => {
      texts.push(((await readJson(request)) as { text: string }).text);
      ids.push(String(request.headers['quarterdeck-alert-id']));
      const given = status(texts.length);
      if (given !== 'hold') response.writeHead(given).end();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const made = await admin.post('/alert-receivers', {
      organization_id: admin.organizationId,
      name: 'on call',
      description: '',
      type: 'SLACK',
      send_resolved: true,
      webhook_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-path`,
      ...changes,
    });
    return { texts, ids, id: ok(made, 201).id as string };
  }

  /** Evaluates all rules once more, as if the time of the next evaluation had come. */
  async function evaluate(platform = app.platform) {
    await sql`update alert_rule set next_at = now(), claim_token = null, lease_until = null where enabled`.execute(
      app.db,
    );
    const request = { limit: 1000, nodeId: newId(), leaseSeconds: 15 };
    for (const claim of await claimRules(app.db, request)) await evaluateRule(platform, claim);
  }

  function worker(times: AlertDeliveryOptions['times'] = {}) {
    const client = { allowedPrivateAddresses: ['127.0.0.0/8'] };
    const outgoing = { http: createHttpClient(client), mail: createMailClient({ ...client, timeoutMs: 2_000 }) };
    const delivery = createAlertDelivery({
      platform: app.platform,
      nodeId: newId(),
      outgoing,
      times: { ...QUICK, ...times },
    });
    workers.push(delivery);
    delivery.start();
    return delivery;
  }

  const deploy = async (admin: Actor, id: string, changes: object, state: string) => {
    ok(await admin.put(`/application/${id}`, changes), 200);
    ok(await admin.post(`/application/${id}/deploy?wait=30`, {}), 200);
    expect(ok(await admin.get(`/application/${id}/status`), 200).state).toBe(state);
  };

  /** Creates an organization with an application whose deployment has failed, because its branch does not exist. */
  async function failedApplication() {
    const admin = await app.organization();
    const { environment, application } = await makeExample(admin);
    const { id, git_repository } = application as { id: string; git_repository: { url: string } };
    const git = { url: git_repository.url, branch: 'HEAD' };
    const fail = () => deploy(admin, id, { git_repository: { ...git, branch: 'no-such-branch' } }, 'DEPLOYMENT_ERROR');
    await fail();
    return {
      admin,
      id,
      environmentId: environment.id as string,
      clusterId: environment.cluster_id as string,
      fail,
      succeed: () => deploy(admin, id, { git_repository: git }, 'DEPLOYED'),
    };
  }

  /** Sets the state of a service's deployments, as if they had ended so. */
  const setState = (serviceId: string, state: string) =>
    sql`update deployment_service set state = ${state} where service_id = ${serviceId}`.execute(app.db);

  const messagesOf = (admin: Actor) =>
    app.db
      .selectFrom('alert_message')
      .select(['receiver_id', 'content', 'status', 'error', 'attempts'])
      .where('organization_id', '=', admin.organizationId)
      .orderBy('number')
      .execute();

  return { receiver, evaluate, worker, failedApplication, setState, messagesOf };
}

/** Content of a message about one service. */
export const CONTENT = {
  rule: 'a rule',
  severity: 'HIGH',
  happened: 'it is true',
  summary: null,
  runbook_url: null,
  firing: [{ id: newId(), name: 'p / e / s', detail: '', since: '2026-01-31T09:05:00.000Z' }],
  resolved: [],
};

/** Body of a rule that watches deployments. */
export const ruleBody = (
  admin: Actor,
  clusterId: string,
  target: { target_type: string; target_id: string },
  receivers: string[],
  changes: object = {},
) => ({
  organization_id: admin.organizationId,
  cluster_id: clusterId,
  name: 'deployments',
  description: '',
  tag: 'deployment',
  condition: { kind: 'BUILT', promql: 'deployment_failed' },
  for_duration: 'PT0S',
  severity: 'HIGH',
  enabled: true,
  alert_receiver_ids: receivers,
  presentation: {},
  target,
  ...changes,
});

/** Returns the body of an edit that leaves a rule as it is. */
export const editOf = ({ organization_id: _o, cluster_id: _c, target: _t, ...edit }: ReturnType<typeof ruleBody>) =>
  edit;
