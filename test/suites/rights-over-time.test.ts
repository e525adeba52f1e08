import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { applyDeploymentRules } from '#resources/deployment-rule/index.ts';
import { requestAutomatically } from '#services/capabilities/service/actions/request.ts';
import { readExternalSecrets } from '#resources/secret-manager-access/index.ts';
import { freezeVariables, recordOutputs, thawVariables } from '#services/capabilities/variables/index.ts';
import { ok, useApp, type Actor, type Caller } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { startIssuer } from '#test/harness/issuer.ts';

const issuer = await startIssuer(['ES256']);
const app = useApp({ ...issuer.settings, QUARTERDECK_AGENT_IMAGE: 'registry.invalid/acme/agent:1.0' });
afterAll(() => issuer.close());

const session = async (claims: { sub: string; email: string | null; email_verified?: boolean | null }) =>
  app.session(await issuer.sign({ email_verified: true, ...claims }, { algorithm: 'ES256' }));

const roleId = async (admin: Actor, name: string): Promise<string> =>
  ok(await admin.get(`/organization/${admin.organizationId}/availableRole`), 200).results.find(
    (role: { name: string }) => role.name === name,
  ).id;

/** Gives the user behind an actor another role, as another owner would. */
const demote = async (admin: Actor, role: string) =>
  app.db
    .updateTable('member')
    .set({ role_id: await roleId(admin, role) })
    .where('organization_id', '=', admin.organizationId)
    .where('user_id', '=', admin.userId)
    .execute();

/** Creates a token of a scope. Returns a function that calls with it, and functions that revoke its right in several ways. */
async function withToken(admin: Actor, scope: 'ADMIN' | 'DEPLOY' | 'WRITE') {
  const of = `/organization/${admin.organizationId}/apiToken`;
  const { id, token } = ok(await admin.post(of, { name: newId(), scope }), 201);
  const change = (values: { scope?: string; expires_at?: Date }) =>
    app.db.updateTable('api_token').set(values).where('id', '=', id).execute();
  return {
    call: (method: 'POST' | 'PUT', url: string, body: object) =>
      app.anonymous(method, url, body, { authorization: `Token ${token}` }),
    lose: {
      'does less': () => change({ scope: 'READ' }),
      'is over': () => change({ expires_at: new Date(Date.now() - 1000) }),
      'is revoked': async () => ok(await admin.delete(`${of}/${id}`), 204),
    },
  };
}
const LOSSES = ['does less', 'is over', 'is revoked'] as const;

const tokenCaller = (token: string) => (url: string) =>
  app.anonymous('GET', url, undefined, { authorization: `Token ${token}` });

describe('an invitation', () => {
  const invite = async (admin: Actor, role: string) => {
    const email = `${newId()}@example.com`;
    const of = `/organization/${admin.organizationId}/inviteMember`;
    const { id } = ok(await admin.post(of, { email, role_id: await roleId(admin, role) }), 201);
    return { email, url: `${of}/${id}` };
  };

  test.each(['owner', 'admin', 'viewer'])(
    'as %s is not accepted once its sender may no longer give it',
    async (role) => {
      const admin = await app.organization();
      const { email, url } = await invite(admin, role);
      const person = await session({ sub: newId(), email });
      await demote(admin, 'devops');
      expect(ok(await person.post(url), 403).message).toContain('may no longer give the role');
      expect(ok(await person.get('/organization'), 200).results).toEqual([]);
      await demote(admin, 'owner');
      ok(await person.post(url), 201);
    },
  );

  test('as owner is not accepted once its sender is an administrator only', async () => {
    const admin = await app.organization();
    const { email, url } = await invite(admin, 'owner');
    await demote(admin, 'admin');
    ok(await (await session({ sub: newId(), email })).post(url), 403);
  });

  test.each(LOSSES)('that a token sent is not accepted once the token %s', async (loss) => {
    const admin = await app.organization();
    const sender = await withToken(admin, 'ADMIN');
    const of = `/organization/${admin.organizationId}/inviteMember`;
    const invited = async () => {
      const email = `${newId()}@example.com`;
      const body = { email, role_id: await roleId(admin, 'admin') };
      const { id } = ok(await sender.call('POST', of, body), 201);
      return { url: `${of}/${id}`, person: await session({ sub: newId(), email }) };
    };
    const [early, late] = [await invited(), await invited()];
    ok(await early.person.post(early.url), 201);
    await sender.lose[loss]();
    expect(ok(await late.person.post(late.url), 403).message).toContain('or the token that they used');
  });

  test.each([
    ['says that the address is not verified', (email: string) => ({ email, email_verified: false })],
    ['does not say that the address is verified', (email: string) => ({ email, email_verified: null })],
    ['names no address and says that it is not verified', () => ({ email: null, email_verified: false })],
  ])('is not accepted in a session that %s, although an earlier one did', async (_what, claims) => {
    const admin = await app.organization();
    const { email, url } = await invite(admin, 'viewer');
    const sub = newId();
    ok(await (await session({ sub, email })).get('/organization'), 200);
    ok(await (await session({ sub, ...claims(email) })).post(url), 404);
    ok(await (await session({ sub, email })).post(url), 201);
  });
});

describe('a token', () => {
  const make = async (admin: Actor, by: string, more: object = {}) => {
    const authorization = { authorization: `Token ${by}` };
    const body = { name: newId(), scope: 'ADMIN', ...more };
    return app.anonymous('POST', `/organization/${admin.organizationId}/apiToken`, body, authorization);
  };

  test('that a token made ends when that one does, and none can be made to end later', async () => {
    const admin = await app.organization();
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const parent = ok(await make(admin, admin.token, { expires_at }), 201);
    const child = ok(await make(admin, parent.token), 201);
    const grandchild = ok(await make(admin, child.token), 201);
    expect([child.expires_at, grandchild.expires_at]).toEqual([expires_at, expires_at]);
    const later = new Date(Date.now() + 7_200_000).toISOString();
    expect(await make(admin, parent.token, { expires_at: later })).toMatchObject({
      status: 400,
      body: { errors: [{ field: 'expires_at', message: expect.stringContaining(expires_at) }] },
    });
    const sooner = new Date(Date.now() + 60_000).toISOString();
    expect(ok(await make(admin, parent.token, { expires_at: sooner }), 201).expires_at).toBe(sooner);
  });

  test('is revoked with the token that it was made with, and an event tells of each', async () => {
    const admin = await app.organization();
    const of = `/organization/${admin.organizationId}`;
    const parent = ok(await make(admin, admin.token), 201);
    const child = ok(await make(admin, parent.token), 201);
    const grandchild = ok(await make(admin, child.token), 201);
    const callers = [parent, child, grandchild].map(({ token }) => tokenCaller(token));
    for (const caller of callers) ok(await caller(of), 200);
    ok(await admin.delete(`${of}/apiToken/${parent.id}`), 204);
    for (const caller of callers) ok(await caller(of), 401);
    const { events } = ok(await admin.get(`${of}/events?eventType=DELETE`), 200);
    const told = events.map((event: { target_id: string }) => event.target_id);
    expect(told.sort()).toEqual([parent.id, child.id, grandchild.id].sort());
  });

  test('is revoked with an event in the organization that its parent has founded, too', async () => {
    const admin = await app.organization();
    const of = `/organization/${admin.organizationId}`;
    const parent = ok(await make(admin, admin.token), 201);
    const authorization = { authorization: `Token ${parent.token}` };
    const founded = ok(
      await app.anonymous('POST', '/organization', { name: newId(), plan: 'FREE' }, authorization),
      201,
    );
    const child = ok(await make({ ...admin, organizationId: founded.id }, parent.token), 201);
    ok(await tokenCaller(child.token)(`/organization/${founded.id}`), 200);
    ok(await admin.delete(`${of}/apiToken/${parent.id}`), 204);
    ok(await tokenCaller(child.token)(`/organization/${founded.id}`), 401);
    const told = app.db.selectFrom('audit_event').select('target_id').where('organization_id', '=', founded.id);
    expect(await told.where('event_type', '=', 'DELETE').execute()).toEqual([{ target_id: child.id }]);
  });

  test('does no more than its creator may now', async () => {
    const admin = await app.organization();
    const { project } = await makeExample(admin);
    const token = ok(await make(admin, admin.token), 201).token;
    await demote(admin, 'viewer');
    const authorization = { authorization: `Token ${token}` };
    ok(await app.anonymous('PUT', `/project/${project.id}`, { name: newId() }, authorization), 403);
    ok(await tokenCaller(token)(`/project/${project.id}`), 200);
  });

  test('that only reads does not change the onboarding of its creator', async () => {
    const admin = await app.organization();
    const url = `/organization/${admin.organizationId}/onboarding`;
    ok(await (await admin.withScope('READ')).call('POST', url, { status: 'COMPLETED' }), 403);
    ok(await (await admin.withScope('READ')).call('POST', url, {}), 403);
    ok(await (await admin.withScope('DEPLOY')).call('POST', url, {}), 200);
  });
});

describe('hours of an environment', () => {
  /** Sets hours that have ended, and returns the number of requests that they lead to. */
  async function setHours(admin: Actor, put: (url: string, body: object) => Promise<unknown>) {
    const { environment, application } = await makeExample(admin);
    const rule = ok(await admin.get(`/environment/${environment.id}/deploymentRule`), 200);
    const hours = {
      ...rule,
      auto_stop: true,
      timezone: 'UTC',
      start_time: '1970-01-01T00:00:00.000Z',
      stop_time: '1970-01-01T00:01:00.000Z',
      weekdays: ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'],
    };
    await put(`/environment/${environment.id}/deploymentRule/${rule.id}`, hours);
    await app.db.updateTable('service').set({ wanted: 'running' }).where('id', '=', application.id).execute();
    return async () => {
      const due = { next_at: new Date(Date.now() - 1000) };
      await app.db.updateTable('environment_deployment_rule').set(due).where('id', '=', rule.id).execute();
      await applyDeploymentRules(app.platform, new AbortController().signal, requestAutomatically);
      const stops = app.db.selectFrom('deployment').select('id').where('environment_id', '=', environment.id);
      return (await stops.execute()).length;
    };
  }

  test.each([
    ['viewer', 0],
    ['devops', 1],
  ] as const)('that somebody set who is %s now switch %i environments', async (role, switched) => {
    const admin = await app.organization();
    const apply = await setHours(admin, async (url, body) => ok(await admin.put(url, body), 200));
    await demote(admin, role);
    expect(await apply()).toBe(switched);
  });

  test.each(LOSSES)('that a token set switch nothing once the token %s, until they are saved again', async (loss) => {
    const admin = await app.organization();
    const setter = await withToken(admin, 'WRITE');
    let save = (): Promise<unknown> => Promise.reject(new Error('Nothing was saved.'));
    const apply = await setHours(admin, async (url, body) => {
      ok(await setter.call('PUT', url, body), 200);
      save = async () => ok(await admin.put(url, body), 200);
    });
    await setter.lose[loss]();
    expect(await apply()).toBe(0);
    await save();
    expect(await apply()).toBe(1);
  });

  test('that a token set which may still deploy switch the environment', async () => {
    const admin = await app.organization();
    const setter = await withToken(admin, 'WRITE');
    const apply = await setHours(admin, async (url, body) => ok(await setter.call('PUT', url, body), 200));
    expect(await apply()).toBe(1);
  });
});

describe('the run of an agent', () => {
  const makeWorkflow = async (admin: Actor, mode: string) => {
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e', mode }), 201);
    return ok(await admin.post(`/environment/${environment.id}/agenticWorkflow`, { name: 'triage' }), 201);
  };
  const call = ({ slug }: { slug: string }) => app.anonymous('POST', `/agenticWorkflowWebhook/${slug}`, {});

  test('is refused once whoever saved the workflow may no longer edit services there', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin, 'DEVELOPMENT');
    ok(await call(workflow), 202);
    await demote(admin, 'viewer');
    expect(ok(await call(workflow), 403).message).toContain('must save the workflow again');
  });

  test('does no more than the token that saved the workflow, and nothing once that is revoked', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin, 'DEVELOPMENT');
    const of = `/organization/${admin.organizationId}`;
    const { id, token } = ok(await admin.post(`${of}/apiToken`, { name: newId(), scope: 'WRITE' }), 201);
    const url = `/agenticWorkflow/${workflow.id}`;
    const authorization = { authorization: `Token ${token}` };
    const { name } = workflow;
    ok(await app.anonymous('PUT', url, { name, description: 'saved' }, authorization), 200);
    ok(await call(workflow), 202);
    await app.db.updateTable('api_token').set({ scope: 'DEPLOY' }).where('id', '=', id).execute();
    expect(ok(await call(workflow), 403).message).toContain('must save the workflow again');
    await app.db.updateTable('api_token').set({ scope: 'WRITE' }).where('id', '=', id).execute();
    ok(await call(workflow), 202);
    ok(await admin.delete(`${of}/apiToken/${id}`), 204);
    ok(await call(workflow), 403);
    ok(await admin.put(url, { name, description: 'saved again' }), 200);
    ok(await call(workflow), 202);
  });

  test.each(['PRODUCTION', 'STAGING', 'DEVELOPMENT'])('in a %s environment is of that mode, too', async (mode) => {
    const admin = await app.organization();
    const run = ok(await call(await makeWorkflow(admin, mode)), 202);
    expect(ok(await admin.get(`/environment/${run.environment_id}`), 200).mode).toBe(mode);
  });
});

describe('a webhook', () => {
  test('is the organization’s: it stays when its maker may no longer edit it, who then neither changes it nor sends it again', async () => {
    const admin = await app.organization();
    const of = `/organization/${admin.organizationId}/webhook`;
    const body = { target_url: 'https://hooks.example.org/x', events: ['DEPLOYMENT_STARTED'] };
    const { id } = ok(await admin.post(of, body), 201);
    await demote(admin, 'viewer');
    ok(await admin.put(`${of}/${id}`, { ...body, target_url: 'https://elsewhere.example.org' }), 403);
    ok(await admin.post(`${of}/${id}/event/${newId()}/resend`, {}), 403);
    ok(await admin.delete(`${of}/${id}`), 403);
    await demote(admin, 'owner');
    expect(ok(await admin.get(`${of}/${id}`), 200)).toMatchObject({ enabled: true, target_url: body.target_url });
  });
});

describe('going back to an earlier execution', () => {
  test.each(['service', 'environment'] as const)(
    'of a whole %s takes the right to deploy now, whoever made the execution',
    async (what) => {
      const admin = await app.organization();
      const { environment, application } = await makeExample(admin);
      ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
      await demote(admin, 'viewer');
      const url = what === 'service' ? `/application/${application.id}` : `/environment/${environment.id}`;
      ok(await admin.post(`${url}/rollback`, { execution_id: `${environment.id}-1` }), 403);
      const made = app.db.selectFrom('deployment').select('id').where('environment_id', '=', environment.id);
      expect(await made.execute()).toHaveLength(1);
    },
  );
});

describe('a deployment restriction', () => {
  test('goes on when whoever set it may no longer edit the service, and they cannot lift it', async () => {
    const admin = await app.organization();
    const { application } = await makeExample(admin);
    const url = `/application/${application.id}/deploymentRestriction`;
    const rule = { mode: 'EXCLUDE', type: 'PATH', value: 'docs' };
    const { id } = ok(await admin.post(url, rule), 201);
    await demote(admin, 'viewer');
    ok(await admin.put(`${url}/${id}`, { ...rule, mode: 'MATCH' }), 403);
    ok(await admin.delete(`${url}/${id}`), 403);
    ok(await admin.post(url, { ...rule, value: 'other' }), 403);
    expect(ok(await admin.get(url), 200).results).toMatchObject([{ id, ...rule }]);
  });
});

describe('a deployment that was requested', () => {
  test('goes on when whoever requested it may deploy no longer, and they can neither cancel it nor request another', async () => {
    const admin = await app.organization();
    const { environment, application } = await makeExample(admin);
    ok(await admin.post(`/application/${application.id}/deploy`, {}), 200);
    await demote(admin, 'viewer');
    ok(await admin.post(`/environment/${environment.id}/cancelDeployment`, {}), 403);
    ok(await admin.post(`/application/${application.id}/redeploy`, {}), 403);
    const rows = await app.db
      .selectFrom('deployment')
      .select('id')
      .where('environment_id', '=', environment.id)
      .execute();
    expect(rows).toHaveLength(1);
  });
});

describe('an external secret', () => {
  test('is chosen only by those who may use the cluster of its access, and edited by no others', async () => {
    const { admin, accessId, make, on } = await externalSecret();
    const { id } = ok(await make(admin), 201);
    const role = await makerWithout(admin);
    expect(ok(await role('POST', '/variable', { ...on, key: 'OTHER' }), 403).message).toContain('cluster.use');
    const edited = { key: 'TOKEN', value: 'another-secret', secret_manager_access_id: accessId };
    expect(ok(await role('PUT', `/variable/${id}`, edited), 403).message).toContain('cluster.use');
    ok(await role('PUT', `/variable/${id}`, { key: 'TOKEN', value: 'upstream' }), 200);
  });

  test('is given another name by an import only of those who may use the cluster, who have then chosen it', async () => {
    const { admin, application, make } = await externalSecret();
    const { id } = ok(await make(await colleagueOf(admin)), 201);
    const role = await makerWithout(admin);
    const url = `/variable/import?service_id=${application.id}&service_type=APPLICATION`;
    const naming = (value: string) => ({
      overwrite: true,
      vars: ['TOKEN', 'BESIDE'].map((name) => ({ name, scope: 'ENVIRONMENT', is_secret: false, value })),
    });
    const stored = () =>
      app.db
        .selectFrom('variable')
        .select(['value', 'access_chosen_by'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
    const before = await stored();
    expect(before.access_chosen_by).not.toBe(admin.userId);
    const refused = ok(await role('POST', url, naming('another-secret')), 201);
    expect(refused.failed_variables).toMatchObject([
      { name: 'TOKEN', message: expect.stringContaining('cluster.use') },
    ]);
    expect(refused.successful_imported_variables).toMatchObject([{ name: 'BESIDE' }]);
    expect(ok(await role('POST', url, naming('upstream')), 201).failed_variables).toEqual([]);
    expect(await stored()).toEqual(before);
    expect(ok(await admin.post(url, naming('another-secret')), 201).failed_variables).toEqual([]);
    expect(await stored()).toEqual({ value: 'another-secret', access_chosen_by: admin.userId });
  });

  test('that was an output before is not given another name by an execution', async () => {
    const { admin, environment, application, accessId } = await externalSecret();
    const place = {
      organizationId: admin.organizationId,
      environmentId: environment.id,
      serviceId: application.id,
      deploymentId: newId(),
    };
    const write = (value: string) =>
      recordOutputs(app.context, place, [
        { key: 'WRITTEN', value, isSecret: false, description: null, mountPath: null },
      ]);
    await write('first');
    const find = async () =>
      ok(await admin.get(`/environment/${environment.id}/environmentVariable`), 200).results.find(
        (one: { key: string }) => one.key === 'WRITTEN',
      );
    const { id, value } = await find();
    expect(value).toBe('first');
    const choice = { key: 'WRITTEN', value: 'upstream', secret_manager_access_id: accessId };
    ok(await admin.put(`/variable/${id}`, choice), 200);
    expect(await write('another-secret')).toEqual([expect.stringContaining('keeps its value')]);
    expect(await find()).toMatchObject({ id, value: 'upstream' });
  });

  test.each(LOSSES)('that a token chose is not read once the token %s, until it is saved again', async (loss) => {
    const { admin, accessId, on, read } = await externalSecret();
    const chooser = await withToken(admin, 'WRITE');
    const { id } = ok(await chooser.call('POST', '/variable', on), 201);
    // No server answers at the address: the read fails, but not for lack of a permission.
    expect(await read()).not.toContain('cluster.use');
    await chooser.lose[loss]();
    expect(await read()).toContain('no permission cluster.use on its cluster any more');
    const again = { key: 'TOKEN', value: 'upstream', secret_manager_access_id: accessId };
    ok(await admin.put(`/variable/${id}`, again), 200);
    expect(await read()).not.toContain('cluster.use');
  });

  test('keeps its chooser when somebody saves it who may not use the cluster', async () => {
    const { admin, accessId, make } = await externalSecret();
    const { id } = ok(await make(admin), 201);
    const role = await makerWithout(admin);
    const same = { key: 'TOKEN', value: 'upstream', secret_manager_access_id: accessId };
    const stored = () =>
      app.db
        .selectFrom('variable')
        .select(['access_chosen_by', 'access_chosen_with'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
    const before = await stored();
    expect(before.access_chosen_by).toBe(admin.userId);
    ok(await role('PUT', `/variable/${id}`, same), 200);
    expect(await stored()).toEqual(before);
  });

  test('is not read for a deployment once whoever chose it may no longer use the cluster', async () => {
    const { admin, make, read } = await externalSecret();
    ok(await make(admin), 201);
    // No server answers at the address: the read fails, but not for lack of a permission.
    expect(await read()).not.toContain('cluster.use');
    await demote(admin, 'viewer');
    expect(await read()).toContain('no permission cluster.use on its cluster any more');
  });
});

/** Creates an environment, and a secret manager on its cluster. */
async function externalSecret() {
  const admin = await app.organization();
  const { environment, application } = await makeExample(admin);
  const accessId = newId();
  await app.db
    .insertInto('secret_manager_access')
    .values({
      id: accessId,
      organization_id: admin.organizationId,
      cluster_id: environment.cluster_id,
      name: 'vault',
      endpoint: JSON.stringify({ mode: 'VAULT', url: 'https://vault.invalid' }),
      authentication: JSON.stringify({ mode: 'VAULT_TOKEN' }),
    })
    .execute();
  const on = {
    key: 'TOKEN',
    value: 'upstream',
    is_secret: false,
    variable_scope: 'ENVIRONMENT',
    variable_parent_id: environment.id,
    secret_manager_access_id: accessId,
  };
  /** Reads the environment's external secrets as a deployment that is requested now; returns the error. */
  const read = async () => {
    const { shared } = await freezeVariables(app.context, admin, environment.id, []);
    const records = await thawVariables(app.context, admin.organizationId, shared);
    return readExternalSecrets(app.context, admin, records, AbortSignal.timeout(10_000)).then(
      () => 'read',
      (error: Error) => error.message,
    );
  };
  return { admin, environment, application, accessId, on, read, make: (actor: Caller) => actor.post('/variable', on) };
}

/** Adds a second owner to the organization and returns that user's session. */
async function colleagueOf(admin: Actor) {
  const email = `${newId()}@example.com`;
  const of = `/organization/${admin.organizationId}/inviteMember`;
  const { id } = ok(await admin.post(of, { email, role_id: await roleId(admin, 'owner') }), 201);
  const colleague = await session({ sub: newId(), email });
  ok(await colleague.post(`${of}/${id}`), 201);
  return colleague;
}

/** Returns a function that calls with a role that allows everything in all projects, but only views clusters. */
async function makerWithout(admin: Actor) {
  const of = `/organization/${admin.organizationId}`;
  const clusters = ok(await admin.get(`${of}/cluster`), 200).results;
  const projects = ok(await admin.get(`${of}/project`), 200).results;
  const body = {
    name: newId(),
    cluster_permissions: clusters.map(({ id }: { id: string }) => ({ cluster_id: id, permission: 'VIEWER' })),
    project_permissions: projects.map(({ id }: { id: string }) => ({ project_id: id, is_admin: true })),
  };
  const role = ok(await admin.post(`${of}/customRole`, body), 201);
  const { token } = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  return (method: 'POST' | 'PUT', url: string, input: object) =>
    app.anonymous(method, url, input, { authorization: `Token ${token}` });
}
