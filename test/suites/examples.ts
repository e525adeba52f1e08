import { allRoutes } from '#app/routes.ts';
import { KINDS } from '#services/mount.ts';
import type { Kind } from '#services/kind.ts';
import { newId } from '#kernel/ids.ts';
import { packedOf } from '#kernel/parsing/archive.fixture.ts';
import { EXAMPLE } from '#test/harness/engine.ts';
import {
  ACCOUNTS,
  ALERT_RULE,
  alertReceiver,
  mailReceiver,
  alertRule,
  deploymentRule,
  ARGO_CD,
  FORK_HEAD,
  argoCdMapping,
  type World,
} from './world.ts';

/** Successful call of an operation, or its refusal if a world of tests allows no success. */
export interface Example {
  /** Path, if it differs from the world's. */
  path?: string;
  /** Query with its question mark. */
  query?: string;
  body?: unknown;
  contentType?: string;
  /** Status of the refusal, if success needs what is not there; otherwise the documented success is required. */
  refused?: number;
}

const fresh = (name: string): string => `${name} ${newId().slice(0, 8)}`;
const key = (): string => `KEY_${newId().slice(0, 8).toUpperCase()}`;
const FOLDER = await packedOf(['Dockerfile', 'FROM scratch\nCMD ["/hello"]\n']);
const repository = { url: EXAMPLE, branch: 'HEAD' };
const services = (world: World) => ({ application_ids: [world.applicationId] });
const hour = (offset: number): string => encodeURIComponent(new Date(Date.now() + offset * 3_600_000).toISOString());

const helmRepository = (kind: string) => ({ name: fresh('charts'), kind, skip_tls_verification: false, config: {} });

const ofVariables = (kind: string, scope: string): Record<string, (world: World) => Example> => ({
  [`create${scope}${kind}`]: () => ({ body: { key: key(), value: 'v' } }),
  [`edit${scope}${kind}`]: () => ({ body: { key: key(), value: 'w' } }),
  [`create${scope}${kind}Alias`]: () => ({ body: { key: key() } }),
  // The highest scope overrides nothing; the others override the project's.
  [`create${scope}${kind}Override`]: (world) =>
    scope === 'Project'
      ? { body: { value: 'o' }, refused: 400 }
      : { body: { value: 'o' }, path: overridePath(world, scope, kind) },
});

function overridePath(world: World, scope: string, kind: string): string {
  const collection = scope.charAt(0).toLowerCase() + scope.slice(1);
  const place = world.pathOf({ method: 'GET', path: `/${collection}/{${collection}Id}` });
  return kind === 'Secret'
    ? `${place}/secret/${world.projectSecretId}/override`
    : `${place}/environmentVariable/${world.projectVariableId}/override`;
}

const operations = new Set(allRoutes().map(({ id }) => id));

/** Examples of operations that every kind has; those of a single kind stand below. */
const ofKind = ({ kind, tag }: Kind): Record<string, (world: World) => Example> => ({
  [`create${tag}`]: (world) => ({ body: { ...world.bodies[kind], name: fresh(kind) } }),
  [`edit${tag}`]: (world) => ({ body: { ...world.bodies[kind], name: fresh(kind) } }),
  [`deploy${tag}`]: () => ({ body: {} }),
  // Applications and databases have a service that counts as running (below).
  ...(kind === 'APPLICATION' || kind === 'DATABASE' ? {} : { [`reboot${tag}`]: () => ({ refused: 409 }) }),
  [`uninstall${tag}`]: () => ({ body: {} }),
  [`clone${tag}`]: (world) => ({ body: { name: fresh('clone'), environment_id: world.environmentId } }),
  [`create${tag}CustomDomain`]: () => ({ body: { domain: `${newId()}.example.com`, generate_certificate: false } }),
  [`edit${tag}CustomDomain`]: () => ({ body: { domain: `${newId()}.example.com`, generate_certificate: true } }),
  [`create${tag}DeploymentRestriction`]: () => ({ body: { mode: 'MATCH', type: 'PATH', value: fresh('p') } }),
  [`edit${tag}DeploymentRestriction`]: () => ({ body: { mode: 'MATCH', type: 'PATH', value: fresh('p') } }),
  [`edit${tag}AdvancedSettings`]: () => ({ body: {} }),
  [`edit${tag}Network`]: () => ({ body: { sticky_session: true } }),
  [`import${tag}EnvironmentVariable`]: () => ({ body: importOf(kind) }),
  // Nothing was deployed in the world of the examples.
  [`rollback${tag}`]: () => ({ body: { execution_id: 'none' }, refused: 400 }),
  // No service follows the image.
  [`autoDeploy${tag}Environments`]: () => ({ body: { image_name: 'acme/none', tag: '2' }, refused: 400 }),
  [`preview${tag}Environments`]: () => ({ body: { image_name: 'acme/none', tag: '2' }, refused: 400 }),
  ...ofVariables('EnvironmentVariable', tag),
  ...ofVariables('Secret', tag),
});

const importOf = (scope: string) => ({
  overwrite: true,
  vars: [{ name: 'IMPORTED', value: 'v', scope, is_secret: false }],
});

const LABELS_GROUP = {
  name: 'labels',
  labels: [{ key: 'example.com/team', value: 'shop', propagate_to_cloud_provider: false }],
};
const ANNOTATIONS_GROUP = { name: 'a', annotations: [{ key: 'a', value: 'any text' }], scopes: ['PODS'] };
const ofKinds = Object.fromEntries(
  KINDS.flatMap((kind) => Object.entries(ofKind(kind))).filter(([id]) => operations.has(id)),
);

const ofCredentials = (operation: string, body: object): Record<string, () => Example> => ({
  [`create${operation}`]: () => ({ body }),
  [`edit${operation}`]: () => ({ body }),
});

/** Body of an edit, which does not name the organization. */
function editedReceiver() {
  const { organization_id: _organization, ...body } = alertReceiver('');
  return body;
}

const BLUEPRINT = { name: 'store', tag: 'aws/postgresql/16/1.0.0', icon: 'https://example.com/icon.svg' };

/**
 * Operations on things that a self-hosted installation does not have. They are refused with the reason, or answer 404
 * (docs/decisions/0043).
 */
const ABSENT: Record<string, (world: World) => Example> = {
  postAccountRewardClaim: () => ({ body: { type: 'INVITATION' }, refused: 400 }),
  organizationGithubAppConnect: () => ({ body: { installation_id: '1', code: 'c' }, refused: 400 }),
  organizationGithubAppDisconnect: () => ({ refused: 404 }),
  getOrganizationEnterpriseConnection: () => ({ refused: 404 }),
  updateOrganizationEnterpriseConnection: () => ({
    body: { connection_name: 'okta', default_role: 'viewer', enforce_group_sync: true, group_mappings: {} },
    refused: 404,
  }),
  attachClusterOperator: () => ({ refused: 400 }),
  getClusterOperatorBootstrap: () => ({ refused: 400 }),
  updateClusterOperator: () => ({ body: { chart_version: '1.0.0' }, refused: 400 }),
  resolvePlatformTemplateComponentConfiguration: () => ({
    query: '?clusterMode=CUSTOMER_MANAGED&cloudProvider=AWS',
    body: {},
    refused: 404,
  }),
  getClusterPlatformBinding: () => ({ refused: 404 }),
  updateClusterPlatformBinding: () => ({ body: { templateKey: 'default', templateVersion: '1' }, refused: 400 }),
  resolvePlatformComponentConfiguration: () => ({ body: {}, refused: 404 }),
  getOrganizationInvoice: () => ({ refused: 404 }),
  getOrganizationInvoicePDF: () => ({ refused: 404 }),
  organizationDownloadAllInvoices: () => ({ refused: 400 }),
  generateBillingUsageReport: () => ({
    body: { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', report_expiration_in_seconds: 60 },
    refused: 400,
  }),
  addCreditCode: () => ({ body: { code: 'FREE' }, refused: 400 }),
  addCreditCard: () => ({ body: { number: '4242', cvv: '1', expiry_month: 1, expiry_year: 2030 }, refused: 400 }),
  deleteCreditCard: () => ({ refused: 404 }),
  getBlueprintCatalogServiceReadme: () => ({ refused: 404 }),
  getBlueprintCatalogServiceManifest: (world) => ({ query: `?environmentId=${world.environmentId}`, refused: 404 }),
  createBlueprint: () => ({ body: BLUEPRINT, refused: 400 }),
  checkBlueprintUpdate: () => ({ refused: 404 }),
  previewBlueprintUpdate: () => ({ body: BLUEPRINT, refused: 404 }),
  deployBlueprint: () => ({ refused: 404 }),
  updateBlueprint: () => ({ body: BLUEPRINT, refused: 404 }),
};

const CREDENTIAL = { id: 'AAAA', rawId: 'AAAA', type: 'public-key' };
const CREATED_CREDENTIAL = { ...CREDENTIAL, response: { clientDataJSON: 'e30', attestationObject: 'oA' } };
const USED_CREDENTIAL = {
  ...CREDENTIAL,
  response: { clientDataJSON: 'e30', authenticatorData: 'AAAA', signature: 'AAAA' },
};

/** Example calls by operation id, without the path. */
export const EXAMPLES: Record<string, (world: World) => Example> = {
  editAccountInformation: () => ({ body: { communication_email: 'ada@example.com' } }),
  signIn: (world) => ({ body: world.signIn }),
  getSignInLink: (world) => ({ body: { secret: world.invitationSecret } }),
  redeemSignInLink: (world) => ({
    body: { secret: world.linkSecret, name: fresh('ada').replace(' ', '-'), password: 'correct horse battery' },
  }),
  // Without a mail server; what it answers with one is tested in src/resources/sign-in.
  requestSignInLink: () => ({ body: { email: 'ada@example.com' }, refused: 403 }),
  editAccountAddress: () => ({ body: { email: 'ada@example.com' }, refused: 403 }),
  deleteAccountAddressChange: () => ({ refused: 404 }),
  confirmAccountAddress: (world) => ({ body: { secret: world.linkSecret }, refused: 404 }),
  // Browsers make no passkeys at the address of these tests, which has no name; what is answered at one is tested in src/resources/sign-in.
  beginPasskeySignIn: () => ({ refused: 403 }),
  signInWithPasskey: () => ({ body: { credential: USED_CREDENTIAL }, refused: 403 }),
  beginPasskeyByLink: (world) => ({ body: { secret: world.linkSecret, name: 'ada' }, refused: 403 }),
  redeemLinkWithPasskey: (world) => ({
    body: { secret: world.linkSecret, passkey_name: 'laptop', credential: CREATED_CREDENTIAL },
    refused: 403,
  }),
  beginAccountPasskey: () => ({ refused: 403 }),
  createAccountPasskey: () => ({ body: { name: 'laptop', credential: CREATED_CREDENTIAL }, refused: 403 }),
  editAccountPasskey: () => ({ body: { name: 'phone' }, refused: 403 }),
  deleteAccountPasskey: () => ({ refused: 403 }),
  // These are for sessions; what they answer there is tested in src/resources/sign-in.
  acceptInvitationByLink: (world) => ({ body: { secret: world.invitationSecret }, refused: 403 }),
  editAccountPassword: () => ({
    body: { current_password: 'correct horse battery', password: 'another horse battery' },
    refused: 403,
  }),
  deleteAccountSession: () => ({ refused: 404 }),
  createUserSignUp: () => ({
    body: {
      first_name: 'Ada',
      last_name: 'L',
      user_email: 'ada@example.com',
      type_of_use: 'WORK',
      qovery_usage: 'everything',
    },
  }),
  updateOrganizationOnboarding: () => ({ body: {} }),
  createOrganization: () => ({ body: { name: fresh('organization') } }),
  editOrganization: () => ({ body: { name: fresh('organization') } }),
  // The world has no other members: such changes are tested beside the members.
  editOrganizationMemberRole: () => ({ body: { user_id: newId(), role_id: newId() }, refused: 400 }),
  deleteMember: () => ({ body: { user_id: newId() }, refused: 400 }),
  postOrganizationTransferOwnership: () => ({ body: { user_id: newId() }, refused: 400 }),
  postInviteMember: () => ({ body: { email: `${newId()}@example.com` } }),
  // Only the invited person can accept, in a session of their own.
  postAcceptInviteMember: () => ({ refused: 403 }),
  deleteOrganization: () => ({ refused: 409 }),
  // The other cluster has environments.
  deleteCluster: (world) => ({ path: `/organization/${world.organizationId}/cluster/${world.spareClusterId}` }),
  createOrganizationCustomRole: () => ({ body: { name: fresh('role') } }),
  editOrganizationCustomRole: () => ({ body: { name: fresh('role') } }),
  createOrganizationApiToken: () => ({ body: { name: fresh('token'), scope: 'READ' } }),
  createOrganizationPolicyApiToken: () => ({ body: { name: fresh('token'), opa_policy: 'package p\nallow := true' } }),
  ...ofCredentials('AWSCredentials', ACCOUNTS.aws),
  ...ofCredentials('ScalewayCredentials', ACCOUNTS.scaleway),
  ...ofCredentials('GcpCredentials', ACCOUNTS.gcp),
  ...ofCredentials('AzureCredentials', ACCOUNTS.azure),
  ...ofCredentials('OnPremiseCredentials', ACCOUNTS.onPremise),
  ...ABSENT,
  changePlan: () => ({ body: { plan: 'TEAM' } }),
  editOrganizationBillingInfo: () => ({
    body: {
      first_name: 'Ada',
      last_name: 'L',
      email: 'ada@example.com',
      address: '1 Main Street',
      city: 'Paris',
      zip: '75001',
      country_code: 'FR',
    },
  }),
  createAlertReceiver: (world) => ({ body: alertReceiver(world.organizationId) }),
  editAlertReceiver: () => ({ body: editedReceiver() }),
  // No server answers at the address of the receivers.
  validateExistingAlertReceiver: () => ({ body: {}, refused: 502 }),
  validateNewAlertReceiver: (world) => ({
    body: { alert_receiver: mailReceiver(world.organizationId, 'a-password') },
    refused: 502,
  }),
  createAlertRule: (world) => ({
    body: alertRule(world.organizationId, world.clusterId, world.applicationId, world.alertReceiverId),
  }),
  editAlertRule: (world) => ({ body: { ...ALERT_RULE, alert_receiver_ids: [world.alertReceiverId] } }),
  createGitToken: () => ({ body: { name: fresh('git'), type: 'GITHUB', token: 'a-token' } }),
  editGitToken: () => ({ body: { name: fresh('git'), type: 'GITHUB' } }),
  createMcpServer: () => ({ body: { name: fresh('tools'), url: 'https://mcp.example.com/mcp' } }),
  editMcpServer: () => ({ body: { name: fresh('tools'), url: 'https://mcp.example.com/mcp' } }),
  createContainerRegistry: () => ({ body: { name: fresh('registry'), kind: 'DOCKER_HUB', config: {} } }),
  createContainerRegistryWebhook: () => ({}),
  editContainerRegistry: () => ({ body: { name: fresh('registry'), kind: 'ECR', config: {} } }),
  // The registry needs a role of AWS that the program cannot assume.
  getContainerVersions: () => ({ refused: 400 }),
  // The access has no credentials.
  listUpstreamSecretsFromSecretProvider: () => ({ refused: 502 }),
  // The registry of the world's container does not exist, and its cluster is no Kubernetes.
  planContainerDeployment: () => ({ refused: 502 }),
  planEnvironmentDeployment: () => ({ refused: 502 }),
  getClusterToken: () => ({ refused: 400 }),
  // No provider is reachable from here, and there is no usable token.
  ...Object.fromEntries(
    ['Github', 'Gitlab', 'Bitbucket'].flatMap((name) =>
      [`getOrganization${name}RepositoryBranches`, `get${name}RepositoryBranches`].map((id) => [
        id,
        () => ({ query: '?name=acme/shop' }),
      ]),
    ),
  ),
  listDirectoriesFromGitRepository: () => ({ body: { ...repository, provider: 'GITHUB' } }),
  createHelmRepository: () => ({ body: helmRepository('OCI_DOCKER_HUB') }),
  editHelmRepository: () => ({ body: helmRepository('OCI_ECR') }),
  // The repository needs a role of AWS that the program cannot assume.
  getHelmCharts: () => ({ refused: 400 }),
  createOrganizationLabelsGroup: () => ({ body: LABELS_GROUP }),
  editOrganizationLabelsGroup: () => ({ body: LABELS_GROUP }),
  createOrganizationAnnotationsGroup: () => ({ body: ANNOTATIONS_GROUP }),
  editOrganizationAnnotationsGroup: () => ({ body: ANNOTATIONS_GROUP }),
  parseTerraformVariablesFromGitRepo: () => ({ body: { git_repository: repository } }),
  listTfVarsFilesFromGitRepo: () => ({ body: { git_repository: repository, mode: { type: 'AutoDiscover' } } }),
  createProject: () => ({ body: { name: fresh('project') } }),
  editProject: () => ({ body: { name: fresh('project') } }),
  createEnvironment: () => ({ body: { name: fresh('environment') } }),
  editEnvironment: () => ({ body: { name: fresh('environment') } }),
  approveForkPreview: () => ({ body: { commit_id: FORK_HEAD } }),
  cloneEnvironment: () => ({ body: { name: fresh('environment') } }),
  createDeploymentRule: (world) => ({ body: deploymentRule(world.clusterId) }),
  editProjectDeployemtnRule: (world) => ({ body: deploymentRule(world.clusterId) }),
  updateDeploymentRulesPriorityOrder: () => ({ body: {} }),
  editEnvironmentDeploymentRule: (world) => ({ body: deploymentRule(world.clusterId) }),
  getDeploymentStatusByDeploymentRequestId: (world) => ({ query: `?deploymentRequestId=${world.deploymentRequestId}` }),
  createEnvironmentDeploymentStage: () => ({ body: { name: fresh('stage') } }),
  editDeploymentStage: () => ({ body: { name: fresh('stage') } }),
  attachServiceToDeploymentStage: () => ({ body: {} }),
  createOrganizationWebhook: () => ({
    body: { target_url: 'https://hooks.example.org/y', events: ['DEPLOYMENT_STARTED'] },
  }),
  editOrganizationWebhook: () => ({
    body: { target_url: 'https://hooks.example.org/y', events: ['DEPLOYMENT_STARTED'] },
  }),
  createCluster: () => ({
    body: { name: fresh('cluster'), region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' },
  }),
  editCluster: () => ({ body: { name: fresh('cluster'), region: 'here', cloud_provider: 'ON_PREMISE' } }),
  lockCluster: () => ({ body: { reason: 'upgrade', ttl_in_days: 1 } }),
  editClusterAdvancedSettings: () => ({ body: { 'loki.log_retention_in_week': 4 } }),
  editRoutingTable: () => ({ body: { routes: [] } }),
  specifyClusterCloudProviderInfo: () => ({ body: {} }),
  editClusterDnsProvider: () => ({ body: { dns_provider: { provider: 'QOVERY', domain: 'apps.example.net' } } }),
  getClusterLogs: (world) => ({
    query: `?endpoint=query_range&query=${encodeURIComponent(`{cluster_id="${world.clusterId}"}`)}`,
  }),
  // The fake runtime is on no machine.
  getClusterMetrics: () => ({ query: '?endpoint=query&query=up', refused: 400 }),
  getClusterKubernetesEvents: () => ({ query: `?from_date_time=${hour(-1)}&to_date_time=${hour(0)}` }),
  // Only Kubernetes has these, and the cluster has another runtime.
  getClusterKubeconfig: () => ({ refused: 400 }),
  deployApplicationFolder: () => ({ body: FOLDER, contentType: 'application/gzip' }),
  editClusterKubeconfig: () => ({ body: 'kind: Config', contentType: 'application/x-yaml', refused: 400 }),
  getInstallationHelmValues: () => ({ refused: 400 }),
  updateKarpenterPrivateFargateSubnetIds: () => ({ body: {}, refused: 400 }),
  listEksAnywhereCommits: () => ({ refused: 400 }),
  updateEksAnywhereCommit: () => ({ body: { commit_id: 'a'.repeat(40) }, refused: 400 }),
  getEksAnywhereClusterJwt: () => ({ refused: 400 }),
  startClusterAnalysis: () => ({ body: { kind: 'DEPRECATED_API_CHECK', output_format: 'JSON' }, refused: 400 }),
  getClusterAnalysis: () => ({ refused: 404 }),
  listClusterAnalysisLogs: () => ({ refused: 404 }),
  // No server answers at that address: the answer is an error, which is no refusal.
  saveArgoCdCredentials: () => ({ body: ARGO_CD }),
  checkArgoCdConnection: () => ({ body: ARGO_CD }),
  getArgoCdAppManifest: () => ({ refused: 502 }),
  saveArgoCdDestinationClusterMapping: (world) => ({ body: argoCdMapping(world.clusterId) }),
  deleteArgoCdDestinationClusterMapping: (world) => ({
    query: `?agentClusterId=${world.clusterId}&argocdClusterUrl=${encodeURIComponent(argoCdMapping('').argocd_cluster_url)}`,
  }),
  ...ofKinds,
  // Its own environment is on a cluster that asks no registry.
  cloneDatabase: (world) => ({ body: { name: fresh('clone'), environment_id: world.databaseEnvironmentId } }),
  cancelAgenticWorkflowDeployment: () => ({ body: {}, refused: 409 }),
  // No setting names an agent.
  callAgenticWorkflowWebhook: () => ({ body: {}, refused: 409 }),
  // No webhook has the address, and the call no signature.
  receiveGitPush: () => ({ body: {}, refused: 404 }),
  receiveRegistryCall: () => ({ body: {}, refused: 404 }),
  linkApplicationToDatabase: () => ({ body: { key: key() }, refused: 409 }),
  addBackupDatabase: (world) => ({
    path: `/database/${world.runningDatabaseId}/backup`,
    body: { name: fresh('backup'), message: 'kept' },
  }),
  // No worker makes backups in the world of the examples.
  downloadDatabaseBackup: () => ({ refused: 409 }),
  planDatabaseRestore: (world) => ({
    path: `/database/${world.runningDatabaseId}/restore`,
    body: { backup_id: world.backupId },
    refused: 409,
  }),
  runDatabaseRestore: (world) => ({
    path: `/database/${world.runningDatabaseId}/restore/${world.runningRestoreId}/run`,
  }),
  ...ofVariables('EnvironmentVariable', 'Project'),
  ...ofVariables('EnvironmentVariable', 'Environment'),
  ...ofVariables('Secret', 'Project'),
  ...ofVariables('Secret', 'Environment'),
  importEnvironmentVariables: (world) => ({
    query: `?service_id=${world.applicationId}&service_type=APPLICATION`,
    body: importOf('APPLICATION'),
  }),
  listVariables: (world) => ({ query: `?parent_id=${world.projectId}&scope=PROJECT` }),
  createVariable: (world) => ({
    body: { key: key(), value: 'v', is_secret: true, variable_scope: 'PROJECT', variable_parent_id: world.projectId },
  }),
  editVariable: () => ({ body: { key: key(), value: 'w' } }),
  createVariableOverride: (world) => ({
    path: `/variable/${world.secondVariableId}/override`,
    body: { value: 'o', override_scope: 'APPLICATION', override_parent_id: world.applicationId },
  }),
  createVariableAlias: (world) => ({
    body: { key: key(), alias_scope: 'APPLICATION', alias_parent_id: world.applicationId },
  }),
  generateDeploymentBuildUsageReport: (world) => ({
    body: { execution_id: world.executionId, report_expiration_in_seconds: 60 },
  }),
  rebootApplication: (world) => ({ path: `/application/${world.runningApplicationId}/restart-service` }),
  rebootDatabase: (world) => ({ path: `/database/${world.runningDatabaseId}/restart-service` }),
  rebootServices: (world) => ({
    path: `/environment/${world.databaseEnvironmentId}/service/restart-service`,
    body: { application_ids: [world.runningApplicationId] },
  }),
  stopSelectedServices: (world) => ({ body: services(world) }),
  uninstallSelectedServices: (world) => ({ body: services(world) }),
  deleteSelectedServices: (world) => ({ body: services(world) }),
  deployAllServices: (world) => ({ body: { applications: [{ application_id: world.applicationId }] } }),
  // Nothing was deployed in the world of the examples.
  rollbackEnvironment: () => ({ body: { execution_id: 'none' }, refused: 400 }),
  cancelEnvironmentDeployment: () => ({ body: {} }),
  cancelDeploymentRequest: () => ({ body: {} }),
  cleanFailedJobs: () => ({ body: {} }),
  checkDockerfile: () => ({ body: { git_repository: repository, dockerfile_path: 'Dockerfile' } }),
  generateDockerfile: () => ({ body: { git_repository: repository, port: 3000 } }),
  checkGitFile: () => ({ body: { git_repository: repository, files: ['Dockerfile'] } }),
  checkHelmRepository: () => ({ body: { git_repository: repository }, refused: 400 }),
  // That repository is no chart.
  createHelmDefaultValues: () => ({ body: { source: { git_repository: repository } }, refused: 400 }),
  // The registry's address does not resolve.
  checkContainerImage: () => ({ body: { image_name: 'registry.invalid/acme/shop', tag: '1' }, refused: 502 }),
  // A local repository has no provider that could call webhooks.
  syncServiceGitWebhook: () => ({ refused: 400 }),
};
