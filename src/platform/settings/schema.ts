import ipaddr from 'ipaddr.js';
import path from 'node:path';

/** One setting: its environment variable, how its text is read, and what it is without. */
export interface Setting<T> {
  name: string;
  default: T;
  /** Throws an Error that says what would be right. */
  parse(text: string): T;
  description: string;
  /** Its value is not shown. */
  secret?: boolean;
}

const setting = <T>(
  name: string,
  fallback: T,
  parse: (text: string) => T,
  description: string,
  secret = false,
): Setting<T> => ({
  name,
  default: fallback,
  parse,
  description,
  secret,
});

const text = (value: string): string => value;

const integer = (min: number, max: number) => (value: string) => {
  if (!/^\d+$/.test(value) || Number(value) < min || Number(value) > max)
    throw new Error(`a whole number from ${min} to ${max} is wanted.`);
  return Number(value);
};

const oneOf =
  <const V extends readonly string[]>(...values: V) =>
  (value: string): V[number] => {
    if (!values.includes(value)) throw new Error(`one of ${values.join(', ')} is wanted.`);
    return value as V[number];
  };

const bool = (value: string): boolean => oneOf('true', 'false')(value) === 'true';

const url =
  (...protocols: string[]) =>
  (value: string): string => {
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol))
      throw new Error(`a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')} is wanted.`);
    return value.replace(/\/$/, '');
  };

/** An address whose parts in braces are filled in. */
const template = (value: string): string => {
  url('http:', 'https:')(value.replaceAll(/\{\w+\}/g, 'x'));
  return value.replace(/\/$/, '');
};

const folders = (value: string): string[] =>
  value
    .split(':')
    .filter((part) => part !== '')
    .map((folder) => {
      if (!path.isAbsolute(folder))
        throw new Error(`${folder} is not an absolute path; absolute paths separated by colons are wanted.`);
      return folder;
    });

const networks = (value: string): string[] =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((cidr) => {
      if (!ipaddr.isValidCIDR(cidr))
        throw new Error(`${cidr} is not a network; CIDRs separated by commas are wanted (10.0.0.0/8).`);
      return cidr;
    });

const portRange = (value: string): string => {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(value) ?? [];
  if (from === undefined || Number(from) < 1024 || Number(to) > 65535 || Number(from) > Number(to))
    throw new Error('two ports from 1024 to 65535 with a hyphen between them are wanted (30000-32767).');
  return value;
};

const imagePrefix = (value: string): string => {
  if (!/^[a-z0-9][a-z0-9.-]*(:\d+)?\/([a-z0-9._-]+\/)*$/.test(value))
    throw new Error('a registry and perhaps a folder in it, with / at the end, are wanted (docker.io/library/).');
  return value;
};

const prefix = (value: string): string => {
  if (!/^[A-Z][A-Z0-9_]*_$/.test(value))
    throw new Error('upper-case letters, digits and _ are wanted, with _ at the end.');
  return value;
};

const EXAMPLES = path.join(import.meta.dirname, '../../../examples');
const OWN_PROJECT = path.join(import.meta.dirname, '../../..');

/** All settings of the program. docs/settings.md is generated from this. */
export const SETTINGS = {
  host: setting('QUARTERDECK_HOST', '127.0.0.1', text, 'Address that the API listens on.'),
  port: setting('QUARTERDECK_PORT', 8080, integer(0, 65535), 'Port of the API; 0 takes a free one.'),
  operationsPort: setting(
    'QUARTERDECK_OPERATIONS_PORT',
    8081,
    integer(0, 65535),
    'Port of /healthz, /readyz and /metrics; 0 takes a free one.',
  ),
  proxyHost: setting(
    'QUARTERDECK_PROXY_HOST',
    '127.0.0.1',
    text,
    'Address that the reverse proxy to deployed services listens on.',
  ),
  proxyPort: setting(
    'QUARTERDECK_PROXY_PORT',
    8082,
    integer(0, 65535),
    'Port of the reverse proxy to deployed services; 0 takes a free one.',
  ),
  proxyPublicUrl: setting(
    'QUARTERDECK_PROXY_PUBLIC_URL',
    '',
    url('http:', 'https:'),
    'Scheme and port by which people reach the reverse proxy, such as https://apps.example.com where TLS ends in front of it (its host is not used); without it http and the port of the proxy.',
  ),
  dataDir: setting(
    'QUARTERDECK_DATA_DIR',
    path.join(OWN_PROJECT, '.quarterdeck'),
    text,
    'Folder for the embedded PostgreSQL, keys, checkouts and what the host runtime runs.',
  ),
  config: setting(
    'QUARTERDECK_CONFIG',
    '',
    text,
    'JSON file with settings under these names; environment variables win over it.',
  ),
  databaseUrl: setting(
    'DATABASE_URL',
    '',
    url('postgres:', 'postgresql:'),
    'PostgreSQL of your own; without it an embedded one is started.',
    true,
  ),
  databaseDirectUrl: setting(
    'DATABASE_DIRECT_URL',
    '',
    url('postgres:', 'postgresql:'),
    'The same database not through a pooler, for LISTEN and liveness.',
    true,
  ),
  databasePoolSize: setting(
    'QUARTERDECK_DATABASE_POOL_SIZE',
    16,
    integer(2, 200),
    'Connections for requests; the engine has half as many of its own.',
  ),
  vaultKeyFile: setting(
    'QUARTERDECK_VAULT_KEY_FILE',
    '',
    text,
    'File with the key that encrypts secrets (base64, 32 bytes; more lines are older keys). Mandatory with DATABASE_URL; else made in the data directory.',
  ),
  role: setting('QUARTERDECK_ROLE', 'all', oneOf('all', 'api', 'worker'), 'What this process does.'),
  runtime: setting(
    'QUARTERDECK_RUNTIME',
    'auto',
    oneOf('auto', 'docker', 'host', 'fake'),
    'Runtime of the first cluster; auto is docker where an engine answers, else host.',
  ),
  dockerHost: setting(
    'DOCKER_HOST',
    '',
    text,
    'Docker Engine or Podman to use; without it the usual sockets are tried.',
  ),
  kubeconfig: setting('KUBECONFIG', '', text, 'Kubernetes configuration, for `doctor`.'),
  rateLimitPerHour: setting(
    'QUARTERDECK_RATE_LIMIT_PER_HOUR',
    1000,
    integer(0, 1_000_000_000),
    'Requests an hour per API token; 0 switches the limit off.',
  ),
  builtInVariablePrefix: setting(
    'QUARTERDECK_BUILT_IN_VARIABLE_PREFIX',
    'QUARTERDECK_',
    prefix,
    'Prefix of built-in variables.',
  ),
  localGitRoots: setting(
    'QUARTERDECK_LOCAL_GIT_ROOTS',
    [EXAMPLES],
    folders,
    "Folders under which git URLs may be local paths, separated by colons; at first the project's own examples.",
  ),
  githubApiUrl: setting(
    'QUARTERDECK_GITHUB_API_URL',
    'https://api.github.com',
    url('http:', 'https:'),
    'API of GitHub that git tokens are for which name no other.',
  ),
  gitlabApiUrl: setting(
    'QUARTERDECK_GITLAB_API_URL',
    'https://gitlab.com/api/v4',
    url('http:', 'https:'),
    'API of GitLab that git tokens are for which name no other.',
  ),
  bitbucketApiUrl: setting(
    'QUARTERDECK_BITBUCKET_API_URL',
    'https://api.bitbucket.org/2.0',
    url('http:', 'https:'),
    'API of Bitbucket that git tokens are for which name no other.',
  ),
  awsUrl: setting(
    'QUARTERDECK_AWS_URL',
    'https://{service}.{region}.amazonaws.com',
    template,
    'Addresses of AWS; {service} is secretsmanager, ssm or sts.',
  ),
  awsAccessKey: setting(
    'QUARTERDECK_AWS_ACCESS_KEY',
    '',
    text,
    'Access key of AWS that assumes the roles which secret manager accesses name, with the id of their organization as the external id.',
  ),
  awsSecretKey: setting('QUARTERDECK_AWS_SECRET_KEY', '', text, 'Secret key that belongs to it.', true),
  gcpSecretsUrl: setting(
    'QUARTERDECK_GCP_SECRETS_URL',
    'https://secretmanager.googleapis.com',
    url('http:', 'https:'),
    'Secret Manager of Google Cloud.',
  ),
  scalewayUrl: setting(
    'QUARTERDECK_SCALEWAY_URL',
    'https://api.scaleway.com',
    url('http:', 'https:'),
    'API of Scaleway.',
  ),
  allowedPrivateAddresses: setting(
    'QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES',
    [] as string[],
    networks,
    'Networks that webhooks and other outgoing calls may reach although private, separated by commas.',
  ),
  ownedBy: setting(
    'QUARTERDECK_OWNED_BY',
    'QOVERY',
    text,
    'Value of `owned_by` on variables that are made here; existing consoles hide and draw by it.',
  ),
  iconPrefix: setting(
    'QUARTERDECK_ICON_PREFIX',
    'app://qovery-console/',
    text,
    'What `icon_uri` begins with; existing consoles draw by it.',
  ),
  openOrganizations: setting(
    'QUARTERDECK_OPEN_ORGANIZATIONS',
    false,
    bool,
    'Whether every authenticated person may create an organization; else the first administrator only.',
  ),
  baseUrl: setting(
    'QUARTERDECK_BASE_URL',
    '',
    url('http:', 'https:'),
    'Address under which people reach the API, for links; without it http://host:port.',
  ),
  proxyDomain: setting(
    'QUARTERDECK_PROXY_DOMAIN',
    'localhost',
    text,
    'Domain under which the proxy serves services: <service>-z<8>.<domain>.',
  ),
  oidcIssuer: setting(
    'QUARTERDECK_OIDC_ISSUER',
    '',
    url('http:', 'https:'),
    'Identity provider for people; its keys are found by discovery. Without it only API tokens are accepted.',
  ),
  oidcAudience: setting('QUARTERDECK_OIDC_AUDIENCE', '', text, 'Audience that its tokens must carry.'),
  terraformStatePort: setting(
    'QUARTERDECK_TERRAFORM_STATE_PORT',
    8083,
    integer(0, 65535),
    'Port on which runs of Terraform reach the states that are kept here; 0 takes a free one. It is listened on while there are runs, on the address of this machine that they see.',
  ),
  terraformStateUrl: setting(
    'QUARTERDECK_TERRAFORM_STATE_URL',
    '',
    url('http:', 'https:'),
    'Address that leads to that port from where Terraform runs, where that is another machine (a remote Docker Engine); else it is found.',
  ),
  terraformPrograms: setting(
    'QUARTERDECK_TERRAFORM_PROGRAMS',
    '',
    text,
    'Folder with versions of Terraform and OpenTofu for host clusters: <folder>/terraform/1.11.4/terraform, <folder>/tofu/1.10.0/tofu; those of the PATH are found besides.',
  ),
  terraformImage: setting(
    'QUARTERDECK_TERRAFORM_IMAGE',
    'docker.io/hashicorp/terraform',
    text,
    'Image with Terraform for Docker clusters, without its tag, which is the version.',
  ),
  openTofuImage: setting(
    'QUARTERDECK_OPEN_TOFU_IMAGE',
    'ghcr.io/opentofu/opentofu',
    text,
    'Image with OpenTofu for Docker clusters, without its tag, which is the version and `-minimal`.',
  ),
  databaseImagePrefix: setting(
    'QUARTERDECK_DATABASE_IMAGE_PREFIX',
    'docker.io/library/',
    imagePrefix,
    "What the images of database servers begin with; at first Docker Hub's official ones (postgres, mysql, mongo, redis). A mirror has them under the same names.",
  ),
  databaseBackupDays: setting(
    'QUARTERDECK_DATABASE_BACKUP_DAYS',
    7,
    integer(1, 3650),
    'Days that the daily backups of managed databases are kept, and those before a delete or a restore.',
  ),
  databasePorts: setting(
    'QUARTERDECK_DATABASE_PORTS',
    '30000-32767',
    portRange,
    'Ports of a machine that databases with public accessibility are published on.',
  ),
  workerSlots: setting('QUARTERDECK_WORKER_SLOTS', 8, integer(1, 1000), 'Deployments that one worker runs at a time.'),
  stepProgressSeconds: setting(
    'QUARTERDECK_STEP_PROGRESS_SECONDS',
    900,
    integer(10, 86_400),
    'Seconds after which a step of a deployment that shows no progress is ended.',
  ),
  buildSlots: setting('QUARTERDECK_BUILD_SLOTS', 2, integer(1, 100), 'Builds that one worker runs at a time.'),
  organizationSlots: setting(
    'QUARTERDECK_ORGANIZATION_SLOTS',
    4,
    integer(1, 1000),
    'Deployments of one organization that run at a time.',
  ),
  eventRetentionDays: setting(
    'QUARTERDECK_EVENT_RETENTION_DAYS',
    400,
    integer(1, 10_000),
    'Days that audit events are kept.',
  ),
  keptReleases: setting(
    'QUARTERDECK_KEPT_RELEASES',
    10,
    integer(10, 1000),
    'Releases of each service that are kept with image, variables and secrets, so that they can be deployed again.',
  ),
  releaseRetentionDays: setting(
    'QUARTERDECK_RELEASE_RETENTION_DAYS',
    0,
    integer(0, 10_000),
    'Days that releases beyond those are kept, too.',
  ),
  imageLimitMb: setting(
    'QUARTERDECK_IMAGE_LIMIT_MB',
    20_480,
    integer(0, 100_000_000),
    'While the images of a machine take more, releases beyond the kept ones go early, oldest first; 0 sets no limit.',
  ),
  deploymentRetentionDays: setting(
    'QUARTERDECK_DEPLOYMENT_RETENTION_DAYS',
    365,
    integer(1, 10_000),
    'Days that ended deployments are kept in the histories; those of kept releases stay.',
  ),
  keptDeployments: setting(
    'QUARTERDECK_KEPT_DEPLOYMENTS',
    200,
    integer(10, 1_000_000),
    'Deployments of each service that are kept in the histories at most; those of kept releases stay.',
  ),
  logRetentionDays: setting(
    'QUARTERDECK_LOG_RETENTION_DAYS',
    90,
    integer(1, 10_000),
    'Days that the logs of ended deployments are kept.',
  ),
  logLimitMb: setting(
    'QUARTERDECK_LOG_LIMIT_MB',
    5120,
    integer(0, 100_000_000),
    'Megabytes of deployment logs, compressed, above which the oldest go early; 0 sets no limit.',
  ),
  streamRetentionHours: setting(
    'QUARTERDECK_STREAM_RETENTION_HOURS',
    24,
    integer(1, 8760),
    'Hours for which a client may resume an event stream where it was.',
  ),
  streamsPerToken: setting(
    'QUARTERDECK_STREAMS_PER_TOKEN',
    20,
    integer(1, 100_000),
    'Event streams that one caller may have open in one process.',
  ),
  streams: setting(
    'QUARTERDECK_STREAMS',
    1000,
    integer(1, 100_000),
    'Event streams that one process serves at a time.',
  ),
  agenticRunHours: setting(
    'QUARTERDECK_AGENTIC_RUN_HOURS',
    24,
    integer(1, 720),
    'Hours after which the environment of an agentic run is deleted.',
  ),
  agentImage: setting(
    'QUARTERDECK_AGENT_IMAGE',
    '',
    text,
    'Image and tag that runs of agentic workflows use on Docker clusters: it has `claude` and `sh`, and what agents are to find. Empty: none runs there.',
  ),
  egressImage: setting(
    'QUARTERDECK_EGRESS_IMAGE',
    'docker.io/library/node:24-alpine',
    text,
    'Image with Node.js 24 or later from which Docker clusters run the proxies of agents.',
  ),
  agentModelUrl: setting(
    'QUARTERDECK_AGENT_MODEL_URL',
    '',
    text,
    "Address of the model's API that agents ask; empty for the program's own.",
  ),
  logLevel: setting(
    'QUARTERDECK_LOG_LEVEL',
    'info',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    'Least level of the log.',
  ),
  otlpEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    '',
    url('http:', 'https:'),
    'OpenTelemetry collector that traces are sent to; none without it.',
  ),
};

export type SettingValues = { [K in keyof typeof SETTINGS]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never };
