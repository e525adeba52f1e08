/** Ids of examples. */
const CLUSTER = '8d3f6a0e-51c2-4b7e-a0f4-6c1b9e2d7a35';
const REGISTRY = '51b0d7c4-2e9f-4a36-8c1d-0f7e5a6b9c82';
const APPLICATION = 'c7e2b9a4-0d63-4f18-b5a7-3e8d1f6c2b90';

const GIT = { url: 'https://github.com/acme/shop.git', branch: 'main' };
const WEB_PORT = { internal_port: 3000, external_port: 443, protocol: 'HTTP', publicly_accessible: true };

const APPLICATION_BODY = {
  name: 'web',
  git_repository: GIT,
  build_mode: 'DOCKER',
  dockerfile_path: 'Dockerfile',
  cpu: 500,
  memory: 512,
  min_running_instances: 1,
  max_running_instances: 2,
  ports: [WEB_PORT],
};
const CONTAINER_BODY = { name: 'web', registry_id: REGISTRY, image_name: 'acme/web', tag: '1.4.2', ports: [WEB_PORT] };
const JOB_BODY = {
  name: 'nightly-report',
  source: { image: { registry_id: REGISTRY, image_name: 'acme/report', tag: '1.4.2' } },
  schedule: { cronjob: { timezone: 'Europe/Paris', scheduled_at: '0 3 * * *' } },
};
const HELM_BODY = {
  name: 'metrics',
  source: { helm_repository: { repository: REGISTRY, chart_name: 'prometheus', chart_version: '25.8.0' } },
};
const TERRAFORM_BODY = {
  name: 'network',
  engine: 'OPEN_TOFU',
  provider_version: { explicit_version: '1.10.6' },
  backend: { kubernetes: {} },
  terraform_files_source: { git: { git_repository: { ...GIT, root_path: '/network' } } },
};
const WEBHOOK = {
  kind: 'STANDARD',
  target_url: 'https://hooks.example.com/deployments',
  target_secret: 'whsec_c2VjcmV0LW9mLXRoZS1ob29r',
  events: ['DEPLOYMENT_FAILURE'],
  enabled: true,
};

/** Examples of bodies that people write first, by operation; the others are made from their schemas (platform/http/example.ts). */
export const REQUEST_EXAMPLES: Record<string, unknown> = {
  createProject: { name: 'shop', description: 'Everything of the shop' },
  createEnvironment: { name: 'production', mode: 'PRODUCTION', cluster: CLUSTER },
  createApplication: APPLICATION_BODY,
  editApplication: { ...APPLICATION_BODY, memory: 1024 },
  deployApplication: { git_commit_id: 'a94a8fe5ccb19ba61c4c0873d391e987982fbbd3' },
  createContainer: CONTAINER_BODY,
  editContainer: { ...CONTAINER_BODY, tag: '1.5.0' },
  deployContainer: { image_tag: '1.5.0' },
  createJob: JOB_BODY,
  editJob: JOB_BODY,
  createHelm: HELM_BODY,
  editHelm: HELM_BODY,
  createTerraform: TERRAFORM_BODY,
  editTerraform: TERRAFORM_BODY,
  createDatabase: { name: 'store', type: 'POSTGRESQL', version: '18', mode: 'CONTAINER', storage: 10 },
  deployAllServices: { applications: [{ application_id: APPLICATION }] },
  createOrganizationWebhook: WEBHOOK,
  editOrganizationWebhook: WEBHOOK,
  createOrganizationApiToken: { name: 'continuous integration', scope: 'DEPLOY' },
  createOrganizationPolicyApiToken: {
    name: 'reads staging',
    opa_policy: 'package quarterdeck\n\ndefault allow := false\n\nallow if input.environment_mode == "STAGING"',
  },
};
