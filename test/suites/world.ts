import { executionIdOf } from '#deployments/index.ts';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { allRoutes } from '#app/routes.ts';
import type { ServiceKind } from '#services/service/holder.ts';
import type { Kind } from '#services/kind.ts';
import { CAPABILITY_ROWS, hasCapability } from '#services/kinds/matrix.ts';
import { KINDS } from '#services/mount.ts';
import type { Route } from '#platform/http/route.ts';
import type { ArgoCdApplication } from '#resources/argo-cd/index.ts';
import { landApps } from '#services/kinds/argocd-app/land.ts';
import { addBackup } from '#services/kinds/database/backups/new-backup.ts';
import { insertRestore } from '#services/kinds/database/backups/queries.ts';
import { findServiceById } from '#services/service/queries.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';
import { makeLink } from '#resources/sign-in/links.ts';
import { insertPasskey } from '#resources/sign-in/passkeys/queries.ts';
import { SAMPLES } from './kinds/samples.ts';

/** Organization with one of each thing that a path of the API names. */
export interface World {
  admin: Actor;
  /** Administrator of another organization. */
  stranger: Actor;
  organizationId: string;
  projectId: string;
  environmentId: string;
  applicationId: string;
  clusterId: string;
  alertReceiverId: string;
  /** Body of each kind, without the name. */
  bodies: Partial<Record<ServiceKind, object>>;
  /** Execution id of the application's first deployment. */
  executionId: string;
  /** Environment of the database. */
  databaseEnvironmentId: string;
  /** Request id of the environment's first deployment. */
  deploymentRequestId: string;
  /** Application in the database's environment that counts as running, and that nothing stops. */
  runningApplicationId: string;
  /** Database that counts as running, and the plan of a restore into it. */
  runningDatabaseId: string;
  runningRestoreId: string;
  backupId: string;
  /** Cluster without environments. */
  spareClusterId: string;
  projectVariableId: string;
  projectSecretId: string;
  /** Second variable of the project, without overrides. */
  secondVariableId: string;
  /** Name and password of the administrator, the secret of a one-time link for the other one, and of an invitation. */
  signIn: { name: string; password: string };
  linkSecret: string;
  invitationSecret: string;
  /** Returns the path of a route with the ids of this world. Throws if a parameter has no entry here. */
  pathOf(route: Pick<Route, 'method' | 'path'>): string;
}

/** Returns the body of a rule that applies to no environment. */
export const deploymentRule = (clusterId: string) => ({
  name: 'rule',
  mode: 'DEVELOPMENT',
  cluster_id: clusterId,
  timezone: 'Europe/Paris',
  start_time: '1970-01-01T08:00:00.000Z',
  stop_time: '1970-01-01T19:00:00.000Z',
  weekdays: ['MONDAY'],
  wildcard: '',
});

/** Regions, zones and engines of the lists of cloud providers. */
const PROVIDER_PLACES = {
  'aws/region': 'eu-west-3',
  'azure/region': 'francecentral',
  'gcp/region': 'europe-west9',
  zone: 'fr-par-1',
  databaseType: 'POSTGRESQL',
};

/** Returns the body of a receiver whose webhook has no server. */
export const alertReceiver = (organization_id: string) => ({
  organization_id,
  name: 'on call',
  description: '',
  type: 'SLACK',
  send_resolved: true,
  webhook_url: 'https://slack.invalid/services/T0/B0/secret',
});

/** Returns the body of a receiver of mail whose server has no address. */
export const mailReceiver = (organization_id: string, auth_password: string) => ({
  organization_id,
  name: 'mail',
  description: '',
  type: 'EMAIL',
  send_resolved: true,
  to: 'ops@example.com,dev@example.com',
  from: 'alerts@example.com',
  smarthost: 'smtp.invalid:587',
  auth_username: 'alerts',
  auth_password,
  require_tls: true,
});

export const ALERT_RULE = {
  name: 'slow',
  description: '',
  tag: 'deployment',
  condition: { kind: 'BUILT', promql: 'deployment_failed' },
  for_duration: 'PT5M',
  severity: 'HIGH',
  enabled: true,
  presentation: {},
};

/** Returns the body of a rule that watches an application. */
export const alertRule = (organization_id: string, cluster_id: string, applicationId: string, receiverId: string) => ({
  ...ALERT_RULE,
  organization_id,
  cluster_id,
  alert_receiver_ids: [receiverId],
  target: { target_type: 'APPLICATION', target_id: applicationId },
});

/** Ids by parameter, or by collection and parameter if the id depends on the segment before it. */
type Values = Record<string, string>;

/** Argo CD at an address where no server answers. */
export const ARGO_CD = { argocd_url: 'https://argo-cd.invalid', argocd_token: 'a-token' };

export const argoCdMapping = (clusterId: string) => ({
  agent_cluster_id: clusterId,
  argocd_cluster_url: 'https://kubernetes.default.svc',
  cluster_id: clusterId,
});

/** Creates a receiver, and a rule whose messages it gets. */
async function alertThings(admin: Actor, of: { organizationId: string; clusterId: string; applicationId: string }) {
  const alertReceiverId: string = (await make(admin, '/alert-receivers', alertReceiver(of.organizationId))).id;
  const rule = alertRule(of.organizationId, of.clusterId, of.applicationId, alertReceiverId);
  return { alertReceiverId, alertRuleId: (await make(admin, '/alert-rules', rule)).id as string };
}

/** Builds the world through the API where possible; `wait` is the time in seconds for its deployment to end. */
export async function makeWorld(app: TestApp, wait = 0): Promise<World> {
  const [admin, stranger] = [await app.organization(), await app.organization()];
  const { project, environment, application } = await makeExample(admin);
  const clusters = ok(await admin.get(`/organization/${admin.organizationId}/cluster`), 200).results;
  const main = {
    organizationId: admin.organizationId,
    projectId: project.id as string,
    environmentId: environment.id as string,
    applicationId: application.id as string,
    clusterId: clusters[0].id as string,
  };
  const services = await everyKind(admin, environment.id, application.id);
  await terraformPlan(app, admin, services.values.terraformId!);
  const values: Values = {
    ...main,
    serviceId: application.id,
    ...(await stagesOf(admin, environment.id)),
    ...(await rulesOf(admin, main)),
    ...(await organizationThings(admin)),
    ...(await variables(admin, 'project', project.id)),
    ...(await variables(admin, 'environment', environment.id)),
    ...services.values,
    ...(await databaseThings(app, admin, project.id)),
    ...(await jobThings(app, admin, environment.id, services.values['jobId']!)),
    ...(await webhookThings(app, admin)),
    previewId: await forkPreview(app, admin, environment.id),
    ...(await deployments(admin, main, wait)),
    ...(await argoCd(app, admin, main)),
    secretManagerAccessId: await secretManagerAccess(admin),
    ...PROVIDER_PLACES,
    serviceType: 'APPLICATION',
    ...(await alertThings(admin, main)),
    // Requests for these ids are answered 404, since nothing creates such things.
    analysisId: newId(),
    invoiceId: newId(),
    creditCardId: newId(),
    blueprintId: newId(),
    connectionName: 'okta',
    templateKey: 'default',
    templateVersion: '1',
    componentKey: 'ingress',
    provider: 'AWS',
    serviceFamily: 'postgresql',
    serviceVersion: '16',
  };
  const workflow = ok(await admin.get(`/agenticWorkflow/${services.values['agenticWorkflowId']!}`), 200);
  values.slug = workflow.slug;
  // No webhook has the id: what a provider calls is tested in src/services/pushes.
  values.gitWebhookId = newId();
  // Calls of registries are tested in src/services/moved-tags.
  values.registryWebhookId = newId();
  values.variableId = values['application/environmentVariableId']!;
  const { sessionId, passkeyId, ...people } = await peopleOf(app, admin, stranger);
  values.sessionId = sessionId;
  values.passkeyId = passkeyId;
  return {
    admin,
    stranger,
    ...main,
    ...people,
    alertReceiverId: values.alertReceiverId!,
    bodies: services.bodies,
    ...(await moreOf(admin, main, values)),
    pathOf: (route) => fill(route, values),
  };
}

/** Signs the administrator in, who invites a person. */
async function peopleOf(app: TestApp, admin: Actor, stranger: Actor) {
  const linkOf = async ({ userId }: Actor) => fragmentOf((await makeLink(app.context, userId)).url);
  const signIn = { name: `n${newId()}`, password: 'correct horse battery' };
  const given = { ...signIn, secret: await linkOf(admin) };
  const { token, session_id: sessionId } = ok(await app.anonymous('POST', '/signIn/link/redeem', given), 201);
  const invitation = { email: `${newId()}@people.example` };
  const url = `/organization/${admin.organizationId}/inviteMember`;
  const { invitation_link: link } = ok(await app.session(token).post(url, invitation), 201);
  return {
    signIn,
    sessionId: sessionId as string,
    passkeyId: await passkeyOf(app, admin),
    linkSecret: await linkOf(stranger),
    invitationSecret: fragmentOf(link),
  };
}

/** Stores a passkey of another address: the one of these tests has none. */
async function passkeyOf(app: TestApp, { userId }: Actor): Promise<string> {
  const id = newId();
  const bytes = { credential_id: Buffer.from(id), public_key: Buffer.from('key'), sign_count: 0 };
  await insertPasskey(app.db, userId, {
    id,
    ...bytes,
    name: 'laptop',
    rp_id: 'qd.example.com',
    transports: [],
    synced: false,
  });
  return id;
}

const fragmentOf = (url: string): string => new URL(url).hash.slice(1);

/** Head of the pull request that waits for an approval. */
export const FORK_HEAD = 'a'.repeat(40);

/** Creates an access by a role that the installation has no key to assume: its manager cannot be asked. */
async function secretManagerAccess(admin: Actor): Promise<string> {
  const endpoint = { mode: 'AWS_SECRET_MANAGER', region: 'eu-west-3' };
  const access = {
    name: 'prod',
    endpoint,
    authentication: { mode: 'AWS_ROLE_ARN', role_arn: 'arn:aws:iam::123456789012:role/reader' },
  };
  const cluster = { name: 'secrets', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const body = { ...cluster, secret_manager_accesses: [access] };
  return (await make(admin, `/organization/${admin.organizationId}/cluster`, body)).secret_manager_accesses[0].id;
}

async function moreOf(admin: Actor, at: { projectId: string; environmentId: string }, values: Values) {
  const cluster = { name: 'spare', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const variable = { key: 'SECOND_VARIABLE', value: 'v' };
  const answers = {
    first_name: 'Ada',
    last_name: 'L',
    user_email: 'ada@example.com',
    type_of_use: 'WORK',
    qovery_usage: 'everything',
  };
  ok(await admin.post('/admin/userSignUp', answers), 200);
  return {
    executionId: executionIdOf(at.environmentId, 1),
    databaseEnvironmentId: values['databaseEnvironmentId']!,
    deploymentRequestId: values.deploymentRequestId!,
    runningApplicationId: values['runningApplicationId']!,
    runningDatabaseId: values['runningDatabaseId']!,
    runningRestoreId: values['runningRestoreId']!,
    backupId: values['backupId']!,
    spareClusterId: (await make(admin, `/organization/${admin.organizationId}/cluster`, cluster)).id as string,
    projectVariableId: values['project/environmentVariableId']!,
    projectSecretId: values['project/secretId']!,
    secondVariableId: (await make(admin, `/project/${at.projectId}/environmentVariable`, variable)).id as string,
  };
}

function fill({ method, path }: Pick<Route, 'method' | 'path'>, values: Values): string {
  const collection = path.split('/')[1];
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) => {
    // Credentials of each provider have a list of their own: `aws/credentials/credentialsId`.
    const list = path.slice(0, at).split('/').slice(-3).join('/');
    const value = values[`${list}${name}`] ?? values[`${collection}/${name}`] ?? values[name];
    if (!value)
      throw new Error(
        `${method} ${path}: test/suites/world.ts has no value for {${name}}: make one there, so that the suites reach it.`,
      );
    return value;
  });
}

const make = async (admin: Actor, url: string, body: unknown): Promise<any> => ok(await admin.post(url, body), 201);

async function stagesOf(admin: Actor, environmentId: string): Promise<Values> {
  const url = `/environment/${environmentId}/deploymentStage`;
  const [first, second] = [await make(admin, url, { name: 'first' }), await make(admin, url, { name: 'second' })];
  return { deploymentStageId: first.id, stageId: second.id };
}

async function rulesOf(
  admin: Actor,
  at: { projectId: string; environmentId: string; clusterId: string },
): Promise<Values> {
  const rule = await make(admin, `/project/${at.projectId}/deploymentRule`, deploymentRule(at.clusterId));
  const own = ok(await admin.get(`/environment/${at.environmentId}/deploymentRule`), 200);
  return { 'project/deploymentRuleId': rule.id, 'environment/deploymentRuleId': own.id };
}

async function registryWithWebhook(admin: Actor, url: string, body: object): Promise<string> {
  const { id } = await make(admin, `${url}/containerRegistry`, body);
  await make(admin, `${url}/containerRegistry/${id}/webhook`, {});
  return id;
}

async function organizationThings(admin: Actor): Promise<Values> {
  const url = `/organization/${admin.organizationId}`;
  // Uses a role of AWS that this program cannot assume: no registry is ever asked.
  const role = { region: 'eu-west-3', role_arn: 'arn:aws:iam::1:role/r' };
  const registry = { name: 'registry', kind: 'ECR', url: 'https://registry.invalid', config: role };
  // Expired, so that no provider is asked with it.
  const gitToken = { name: 'git', type: 'GITHUB', token: 'a-git-token', expired_at: '2020-01-01T00:00:00Z' };
  const charts = { ...registry, kind: 'OCI_ECR', skip_tls_verification: false };
  const policy = { name: 'policy', opa_policy: 'package p\nallow := true' };
  return {
    customRoleId: (await make(admin, `${url}/customRole`, { name: 'a role' })).id,
    apiTokenId: (await make(admin, `${url}/apiToken`, { name: 'a token', scope: 'READ' })).id,
    policyApiTokenId: (await make(admin, `${url}/policyApiToken`, policy)).id,
    gitTokenId: (await make(admin, `${url}/gitToken`, gitToken)).id,
    mcpServerId: (await make(admin, `${url}/mcpServer`, { name: 'tools', url: 'https://mcp.example.com' })).id,
    containerRegistryId: await registryWithWebhook(admin, url, registry),
    helmRepositoryId: (await make(admin, `${url}/helmRepository`, charts)).id,
    labelsGroupId: (await make(admin, `${url}/labelsGroups`, { name: 'labels', labels: [] })).id,
    annotationsGroupId: (await make(admin, `${url}/annotationsGroups`, { name: 'a', annotations: [], scopes: [] })).id,
    inviteId: (await make(admin, `${url}/inviteMember`, { email: 'somebody@example.com' })).id,
    ...(await credentialsOf(admin)),
  };
}

/** Body of each provider's credentials, by the segment of its path. */
export const ACCOUNTS = {
  aws: { name: 'an account', type: 'AWS_ROLE', role_arn: 'arn:aws:iam::1:role/r' },
  scaleway: {
    name: 'an account',
    scaleway_access_key: 'k',
    scaleway_secret_key: 's',
    scaleway_project_id: 'p',
    scaleway_organization_id: 'o',
  },
  gcp: { name: 'an account', gcp_credentials: '{}' },
  azure: { name: 'an account', azure_subscription_id: 's', azure_tenant_id: 't' },
  onPremise: { name: 'an account' },
};

async function credentialsOf(admin: Actor): Promise<Values> {
  const values: Values = {};
  for (const [provider, body] of Object.entries(ACCOUNTS)) {
    const list = `${provider}/credentials`;
    values[`${list}/credentialsId`] = (await make(admin, `/organization/${admin.organizationId}/${list}`, body))
      .id as string;
  }
  return values;
}

async function variables(admin: Actor, collection: string, id: string): Promise<Values> {
  const upper = collection.toUpperCase();
  const url = `/${collection}/${id}`;
  const variable = await make(admin, `${url}/environmentVariable`, { key: `${upper}_VARIABLE`, value: 'v' });
  const secret = await make(admin, `${url}/secret`, { key: `${upper}_SECRET`, value: 's' });
  return { [`${collection}/environmentVariableId`]: variable.id, [`${collection}/secretId`]: secret.id };
}

/** Adds a run of the job, and a template of another job. */
async function jobThings(app: TestApp, admin: Actor, environmentId: string, jobId: string): Promise<Values> {
  const run = {
    id: newId(),
    organization_id: admin.organizationId,
    environment_id: environmentId,
    service_id: jobId,
    event: 'CRON',
    state: 'FAILED',
    scheduled_at: new Date(),
    ended_at: new Date(),
  };
  await app.db.insertInto('job_execution').values(run).execute();
  const [template] = ok(await admin.get(`/environment/${environmentId}/lifecycleTemplate`), 200).results;
  return { 'job/executionId': run.id, lifecycleTemplateId: template.id };
}

/** Creates a service of each kind that can be created (test/suites/kinds/samples.ts), with what its capabilities need. */
async function everyKind(
  admin: Actor,
  environmentId: string,
  applicationId: string,
): Promise<{ values: Values; bodies: World['bodies'] }> {
  const values: Values = {};
  const bodies: World['bodies'] = {};
  // No server answers at that address.
  const place = { admin, environmentId, images: { url: 'https://registry.invalid' }, tag: `sha256:${'0'.repeat(64)}` };
  for (const kind of KINDS) {
    const sample = SAMPLES[kind.kind];
    if (!sample) continue;
    const list = `/environment/${environmentId}/${kind.path}`;
    const body = (bodies[kind.kind] = await sample.body(place));
    // Databases are in an environment of their own (databaseThings).
    if (kind.kind === 'DATABASE') continue;
    const id =
      kind.kind === 'APPLICATION' ? applicationId : (await make(admin, list, { ...body, name: `a ${kind.path}` })).id;
    values[`${kind.path}Id`] = id;
    if (has(kind, 'variables')) Object.assign(values, await variables(admin, kind.path, id));
    Object.assign(values, await serviceThings(admin, kind, `/${kind.path}/${id}`));
  }
  return { values, bodies };
}

async function serviceThings(admin: Actor, kind: Kind, url: string): Promise<Values> {
  const values: Values = {};
  const domain = { domain: `${newId()}.example.com`, generate_certificate: false };
  const restriction = { mode: 'EXCLUDE', type: 'PATH', value: 'docs' };
  const [domains, restrictions] = [`${kind.path}/customDomainId`, `${kind.path}/deploymentRestrictionId`];
  if (has(kind, 'custom domains')) values[domains] = (await make(admin, `${url}/customDomain`, domain)).id;
  if (has(kind, 'deployment restrictions'))
    values[restrictions] = (await make(admin, `${url}/deploymentRestriction`, restriction)).id;
  return values;
}

const routes = allRoutes();
const has = (kind: Kind, name: string): boolean =>
  hasCapability(
    routes,
    kind,
    CAPABILITY_ROWS.find((row) => row.name === name)!,
  );

/** Creates a database with a linked application. Their cluster asks no registry for the image of the database server. */
async function databaseThings(app: TestApp, admin: Actor, projectId: string): Promise<Values> {
  const cluster = { name: 'databases', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
  const { id: cluster_id } = await make(admin, `/organization/${admin.organizationId}/cluster`, cluster);
  const { organizationId } = admin;
  await app.db
    .updateTable('cluster')
    .set({ runtime: 'host' })
    .where('organization_id', '=', organizationId)
    .where('id', '=', cluster_id)
    .execute();
  const environment = await make(admin, `/project/${projectId}/environment`, { name: 'databases', cluster_id });
  const url = `/environment/${environment.id}`;
  const body = { name: 'store', type: 'POSTGRESQL', version: '18', mode: 'CONTAINER' };
  const { id } = await make(admin, `${url}/database`, body);
  const git_repository = { url: 'https://github.com/acme/shop.git', branch: 'main' };
  const application = await make(admin, `${url}/application`, { name: 'client', git_repository });
  const running = await make(admin, `${url}/application`, { name: 'running', git_repository });
  await takeForRunning(app, organizationId, running.id);
  ok(await admin.post(`/database/${id}/application/${application.id}`, {}), 200);
  return {
    databaseId: id,
    targetApplicationId: application.id,
    databaseEnvironmentId: environment.id,
    runningApplicationId: running.id,
    ...(await backupsOf(app, organizationId, id)),
    ...(await runningDatabase(app, admin, url, body)),
  };
}

/** Adds a backup that waits for a worker, and the plan of its restore. */
async function backupsOf(app: TestApp, organizationId: string, databaseId: string): Promise<Values> {
  const row = (await findServiceById(app.db, [organizationId], databaseId))!;
  const backupId = await addBackup(app.context, row, { name: 'a backup', message: '', origin: 'MANUAL' });
  const restoreId = newId();
  await insertRestore(app.db, {
    id: restoreId,
    organization_id: organizationId,
    database_id: databaseId,
    backup_id: backupId,
    replaces: [{ name: 'public.orders', amount: '8192 bytes' }],
    requested_by_name: 'somebody',
  });
  return { backupId, restoreId };
}

/** Creates a database that counts as running: nothing is deployed in these worlds. */
async function runningDatabase(app: TestApp, admin: Actor, url: string, body: object): Promise<Values> {
  const { id } = await make(admin, `${url}/database`, { ...body, name: 'running store' });
  await takeForRunning(app, admin.organizationId, id);
  const { restoreId } = await backupsOf(app, admin.organizationId, id);
  return { runningDatabaseId: id, runningRestoreId: restoreId! };
}

async function takeForRunning(app: TestApp, organizationId: string, serviceId: string): Promise<void> {
  await app.db
    .updateTable('service')
    .set({ wanted: 'running' })
    .where('organization_id', '=', organizationId)
    .where('id', '=', serviceId)
    .execute();
}

/** Adds an Argo CD with an app that was read from it. */
async function argoCd(
  app: TestApp,
  admin: Actor,
  { clusterId, organizationId, environmentId }: { clusterId: string; organizationId: string; environmentId: string },
): Promise<Values> {
  const config = ok(await admin.post(`/cluster/${clusterId}/argoCdConfig`, ARGO_CD), 200);
  const mapping = argoCdMapping(clusterId);
  ok(await admin.post(`/organization/${organizationId}/argoCdDestinationClusterMapping`, mapping), 200);
  const scope = { organizationId };
  await landApps(app.context, scope, config.id, [
    {
      app: argoCdApplication(`env-z${environmentId.slice(0, 8)}`),
      destination: mapping.argocd_cluster_url,
      clusterId,
    },
  ]);
  const row = await app.db
    .selectFrom('service')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('argo_cd_id', '=', config.id)
    .executeTakeFirstOrThrow();
  return { argocdAppId: row.id };
}

const argoCdApplication = (namespace: string): ArgoCdApplication => ({
  name: 'guestbook',
  namespace: 'argocd',
  project: 'default',
  deleting: false,
  destination: { server: null, name: 'in-cluster', namespace },
  sources: [{ repoUrl: 'https://github.com/acme/deploy.git', revision: 'main', path: 'apps/guestbook', chart: null }],
  sync: 'Synced',
  revision: 'a'.repeat(40),
  health: 'Healthy',
  operation: null,
});

/** Adds a plan of the Terraform service, as a deployment leaves it. */
async function terraformPlan(app: TestApp, admin: Actor, id: string): Promise<void> {
  const content = { summary: { create: 0, update: 0, replace: 0, delete: 0 }, changes: [], outputs: [] };
  await app.db
    .insertInto('terraform_plan')
    .values({
      service_id: id,
      deployment_id: newId(),
      organization_id: admin.organizationId,
      applied: false,
      content: JSON.stringify(content),
    })
    .execute();
}

/** Adds a webhook with a failed attempt, as the delivery of webhooks leaves it. */
/** Creates the preview of a fork whose head waits for an approval. The commit before it has one. */
async function forkPreview(app: TestApp, { organizationId: organization_id, userId }: Actor, source_id: string) {
  const [id, pull_request_id] = [newId(), newId()];
  const request = {
    id: pull_request_id,
    organization_id,
    repository: 'github.com/acme/shop',
    number: 7,
    state: 'OPEN',
    is_fork: true,
    head_branch: 'feature',
    head_commit: FORK_HEAD,
    base_branch: 'main',
    base_is_default: true,
    provider: 'GITHUB',
    title: 'A change',
    author: 'ada',
    head_repository: 'ada/shop',
    changed_at: new Date(),
  };
  await app.db.insertInto('pull_request').values(request).execute();
  const approval = { approved_commit: 'b'.repeat(40), approved_by: userId, approved_at: new Date() };
  const preview = { id, organization_id, pull_request_id, source_id, wanted: 'PRESENT', status: 'ENDED' };
  await app.db
    .insertInto('preview')
    .values({ ...preview, ...approval, outcome: 'AWAITS_APPROVAL', ended_at: new Date() })
    .execute();
  return id;
}

async function webhookThings(app: TestApp, admin: Actor): Promise<Values> {
  const body = { target_url: 'https://hooks.example.org/x', events: ['DEPLOYMENT_STARTED'], enabled: true };
  const webhook = await make(admin, `/organization/${admin.organizationId}/webhook`, body);
  const [delivery, attempt] = [newOrderedId(), newOrderedId()];
  const common = {
    organization_id: admin.organizationId,
    webhook_id: webhook.id as string,
    kind: 'STANDARD',
    matched_event: 'DEPLOYMENT_FAILURE',
  };
  await app.db
    .insertInto('webhook_delivery')
    .values({
      ...common,
      id: delivery,
      body: '{"event_type":"DEPLOYMENT_FAILED"}',
      state: 'FAILED',
      attempts: 1,
      tries: 7,
    })
    .execute();
  const sent = {
    delivery_id: delivery,
    number: 1,
    target_url: body.target_url,
    ended_at: new Date(),
    status_code: 500,
  };
  await app.db
    .insertInto('webhook_attempt')
    .values({ ...common, ...sent, id: attempt, response_body: 'oops' })
    .execute();
  return { webhookId: webhook.id, eventId: attempt };
}

/** Requests a deployment and adds a report of it. With a worker beside the application it has ended on return. */
async function deployments(
  admin: Actor,
  at: { environmentId: string; applicationId: string },
  wait: number,
): Promise<Values> {
  const status = ok(await admin.post(`/application/${at.applicationId}/deploy?wait=${wait}`, {}), 200);
  const report = await make(admin, `/environment/${at.environmentId}/deploymentBuildUsageReport`, {
    execution_id: executionIdOf(at.environmentId, 1),
    report_expiration_in_seconds: 3600,
  });
  const [, reportId, secret] = /buildUsageReport\/([^/]+)\/([^/]+)$/.exec(report.report_url)!;
  return { deploymentRequestId: status.deployment_request_id, reportId: reportId!, secret: secret! };
}
