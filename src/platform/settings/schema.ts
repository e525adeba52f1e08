import ipaddr from 'ipaddr.js';
import { Resolver } from 'node:dns';
import path from 'node:path';
import { isMailAddress } from '#platform/mail-client/address.ts';
import { isUuid, OrganizationRules } from '#platform/settings/organization-rules.ts';

/** Setting of the program: its environment variable, its default and its parser. */
export interface Setting<T> {
  name: string;
  default: T;
  /** Throws an Error that says what would be right. */
  parse(text: string): T;
  description: string;
  /** True if its value is hidden. */
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
    throw new Error(`must be a whole number from ${min} to ${max}.`);
  return Number(value);
};

const oneOf =
  <const V extends readonly string[]>(...values: V) =>
  (value: string): V[number] => {
    if (!values.includes(value)) throw new Error(`must be one of ${values.join(', ')}.`);
    return value as V[number];
  };

const bool = (value: string): boolean => oneOf('true', 'false')(value) === 'true';

const url =
  (...protocols: string[]) =>
  (value: string): string => {
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol))
      throw new Error(`must be a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')}.`);
    return value.replace(/\/$/, '');
  };

/** Parses a URL of scheme, host and port, without a path. */
const server =
  (...protocols: string[]) =>
  (value: string): string => {
    const parsed = new URL(url(...protocols)(value));
    if (parsed.href !== `${parsed.origin}/`)
      throw new Error(`must be a scheme, a host and a port alone, such as ${parsed.origin}.`);
    return parsed.origin;
  };

/** Parses an address with placeholders in braces. */
const template = (value: string): string => {
  url('http:', 'https:')(value.replaceAll(/\{\w+\}/g, 'x'));
  return value.replace(/\/$/, '');
};

const folders = (value: string): string[] =>
  value
    .split(':')
    .filter((part) => part !== '')
    .map((folder) => {
      if (!path.isAbsolute(folder)) throw new Error(`${folder} must be an absolute path; separate several by colons.`);
      return folder;
    });

/** Makes the reader of a list separated by commas, whose parts `check` refuses by throwing. */
const listOf =
  (check: (part: string) => void) =>
  (value: string): string[] => {
    const parts = value
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
    parts.forEach(check);
    return parts;
  };

const networks = listOf((cidr) => {
  if (!ipaddr.isValidCIDR(cidr))
    throw new Error(`${cidr} must be a network as a CIDR (10.0.0.0/8); separate several by commas.`);
});

const origins = listOf((origin) => {
  if (origin !== '*' && (!URL.canParse(origin) || new URL(origin).origin !== origin))
    throw new Error(`${origin} must be an origin of scheme, host and port (https://console.example.com).`);
});

const organizationNames = listOf((organization) => {
  if (!['first', '*'].includes(organization) && !isUuid(organization))
    throw new Error(`${organization} must be the id of an organization, first or *; separate several by commas.`);
});

const addresses = listOf((address) => {
  if (!ipaddr.isValid(address))
    throw new Error(`${address} must be an IP address; separate several by commas (192.0.2.10,2001:db8::10).`);
});

const lowerHostNames = listOf((name) => {
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name))
    throw new Error(`${name} is not a host name; names separated by commas are allowed (example.com).`);
});

const hostNames = (value: string): string[] => lowerHostNames(value.toLowerCase());

const dnsServers = (value: string): string[] => {
  const servers = value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  try {
    new Resolver().setServers(servers);
  } catch (cause) {
    throw new Error('addresses of DNS servers separated by commas are allowed (192.0.2.53, [2001:db8::53]:5353).', {
      cause,
    });
  }
  return servers;
};

/** Parses the URL of a mail server, with the login before its name. */
const smtpServer = (value: string): string => {
  const example = 'smtp://user@smtp.example.com:587 or smtps://user@smtp.example.com:465';
  const parsed = new URL(url('smtp:', 'smtps:')(value));
  if (parsed.hostname === '' || !['', '/'].includes(parsed.pathname) || parsed.search !== '' || parsed.hash !== '')
    throw new Error(`must be a login, a host and a port alone, such as ${example}.`);
  if (parsed.password !== '' && parsed.username === '')
    throw new Error(`must have a user name before the password, such as ${example}.`);
  return value;
};

const mailAddress = (value: string): string => {
  if (!isMailAddress(value))
    throw new Error('must be one e-mail address without a name, such as quarterdeck@example.com.');
  return value;
};

const absolutePath = (value: string): string => {
  if (value !== '' && !path.isAbsolute(value))
    throw new Error('an absolute path is required (/etc/ssl/acme-roots.pem).');
  return value;
};

const proxyProgram = (value: string): string => {
  if (!['caddy', 'builtin'].includes(value) && !path.isAbsolute(value))
    throw new Error('builtin, caddy or the absolute path of Caddy is required.');
  return value;
};

const portRange = (value: string): string => {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(value) ?? [];
  if (from === undefined || Number(from) < 1024 || Number(to) > 65535 || Number(from) > Number(to))
    throw new Error('must be two ports from 1024 to 65535 with a hyphen between them (30000-32767).');
  return value;
};

const imageNames = (value: string): string[] =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((name) => {
      if (!/^([a-zA-Z0-9.-]+(:\d+)?\/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]*)?$/.test(name))
        throw new Error(
          `${name} must be the name of an image, with or without its tag; several are separated by commas (node:24,debian).`,
        );
      return name;
    });

const imagePrefix = (value: string): string => {
  if (!/^[a-z0-9][a-z0-9.-]*(:\d+)?\/([a-z0-9._-]+\/)*$/.test(value))
    throw new Error('must be a registry and perhaps a folder in it, with / at the end (docker.io/library/).');
  return value;
};

const objectFolder = (value: string): string => {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/.test(value) || value.length > 200)
    throw new Error(
      'must be names of letters, digits, ".", "_" and "-" with a slash between them (backups/quarterdeck).',
    );
  return value;
};

const prefix = (value: string): string => {
  if (!/^[A-Z][A-Z0-9_]*_$/.test(value))
    throw new Error('must be upper-case letters, digits and _, with _ at the end.');
  return value;
};

const RUNTIMES = ['host', 'docker', 'kubernetes', 'fake'];

const organizations = listOf((one) => {
  if (one !== 'first' && !isUuid(one))
    throw new Error(`${one} must be first or the id of an organization; separate several by commas.`);
});

const runtimeRules = (value: string): OrganizationRules =>
  new OrganizationRules(value, (one) => RUNTIMES.includes(one), `one of ${RUNTIMES.join(', ')}`);

const nodeRules = (value: string): OrganizationRules =>
  new OrganizationRules(value, isUuid, 'the id of a machine (the file node-id in its data directory)');

const EXAMPLES = path.join(import.meta.dirname, '../../../examples');
const OWN_PROJECT = path.join(import.meta.dirname, '../../..');

/** Settings of the program. docs/settings.md is generated from this. */
export const SETTINGS = {
  host: setting('QUARTERDECK_HOST', '127.0.0.1', text, 'Address that the API listens on.'),
  port: setting('QUARTERDECK_PORT', 8080, integer(0, 65535), 'Port of the API; 0 takes a free one.'),
  machineUrl: setting(
    'QUARTERDECK_MACHINE_URL',
    '',
    server('http:', 'https:'),
    'URL at which the API processes of other machines of this installation reach this one, such as https://10.0.0.5:8080. Requests for what runs on this machine (logs, shells, ports, backups) are sent on to it with the credentials of their callers, so use https or a network of your own. Without it only this machine answers them.',
  ),
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
  proxy: setting(
    'QUARTERDECK_PROXY',
    'builtin',
    proxyProgram,
    'Reverse proxy to deployed services: builtin, which serves no HTTPS, or caddy, which is looked for on the usual PATH unless this is its absolute path.',
  ),
  proxyHttpsPort: setting(
    'QUARTERDECK_PROXY_HTTPS_PORT',
    8443,
    integer(1, 65535),
    'Port of HTTPS, which Caddy listens on while a custom domain asks for a certificate. Authorities connect to 80 and 443: lead those here, or set them.',
  ),
  acmeDirectory: setting(
    'QUARTERDECK_ACME_DIRECTORY',
    'https://acme-v02.api.letsencrypt.org/directory',
    url('https:'),
    'ACME directory of the authority that issues certificates for custom domains.',
  ),
  acmeEmail: setting(
    'QUARTERDECK_ACME_EMAIL',
    '',
    text,
    'Address that the authority may write to about certificates; sent to it with the account.',
  ),
  acmeRootsFile: setting(
    'QUARTERDECK_ACME_ROOTS_FILE',
    '',
    absolutePath,
    "PEM file with the roots that the ACME directory's own certificate is checked against, for an authority of your own; without it the machine's.",
  ),
  proxyPublicUrl: setting(
    'QUARTERDECK_PROXY_PUBLIC_URL',
    '',
    url('http:', 'https:'),
    'Scheme and port by which people reach the reverse proxy, such as https://apps.example.com where TLS ends in front of it (its host is not used); without it http and the port of the proxy.',
  ),
  trustedProxies: setting(
    'QUARTERDECK_TRUSTED_PROXIES',
    [] as string[],
    networks,
    'Networks of proxies in front of this installation, such as 127.0.0.1/32 for a TLS terminator on this machine, separated by commas. What they say about their clients (X-Forwarded-For and -Proto) counts, for workloads and for lists of addresses that may call webhooks; without it the address of the connection counts.',
  ),
  dataDir: setting(
    'QUARTERDECK_DATA_DIR',
    path.join(OWN_PROJECT, '.quarterdeck'),
    text,
    'Folder for the embedded PostgreSQL, keys, checkouts and what the host runtime runs.',
  ),
  temporaryData: setting(
    'QUARTERDECK_TEMPORARY_DATA',
    false,
    bool,
    'Whether that folder ends with the process, as in a container without a volume. The process then owns no clusters: it starts no reverse proxy, the first start makes no administrator token, and the machine leaves the list of machines when the process stops. Only with DATABASE_URL and QUARTERDECK_RUNTIME=kubernetes.',
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
    'The same database not through a pooler, for migrations, LISTEN and the liveness of workers. Required where DATABASE_URL leads through a pooler (docs/operations.md); each process has up to five connections to it.',
    true,
  ),
  databasePoolSize: setting(
    'QUARTERDECK_DATABASE_POOL_SIZE',
    16,
    integer(2, 200),
    'Connections for requests; the engine has as many of its own as QUARTERDECK_WORKER_SLOTS, and at least 4.',
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
    oneOf('auto', 'docker', 'host', 'kubernetes', 'fake'),
    'Runtime of the first cluster; auto is docker where an engine answers, else host. A kubernetes one takes a kubeconfig, or QUARTERDECK_OWN_CLUSTER.',
  ),
  ownCluster: setting(
    'QUARTERDECK_OWN_CLUSTER',
    [] as string[],
    organizations,
    'Organizations whose Kubernetes clusters without a kubeconfig are the one that this program runs in, reached with the account of its pod: ids, or `first` (the one that the first start makes), separated by commas. Their members can then deploy with the rights of that account. Empty: none.',
  ),
  kubernetesHost: setting(
    'KUBERNETES_SERVICE_HOST',
    '',
    text,
    'Host of the API server of that cluster; Kubernetes sets it in each pod.',
  ),
  kubernetesPort: setting(
    'KUBERNETES_SERVICE_PORT',
    443,
    integer(1, 65535),
    'Its port; Kubernetes sets it in each pod.',
  ),
  serviceAccountDir: setting(
    'QUARTERDECK_SERVICE_ACCOUNT_DIR',
    '/var/run/secrets/kubernetes.io/serviceaccount',
    absolutePath,
    "Folder with the files `token` and `ca.crt` of the pod's account; they are read again when they change.",
  ),
  organizationRuntimes: setting(
    'QUARTERDECK_ORGANIZATION_RUNTIMES',
    runtimeRules('*=docker,kubernetes,fake;first=*'),
    runtimeRules,
    'Runtimes that the clusters of each organization may have: <organization>=<runtimes>, rules separated by semicolons, runtimes by commas. An organization is its id, `first` (the one that the first start makes) or * (all others); the most exact rule holds. The host runtime is for code that you trust with this machine.',
  ),
  organizationNodes: setting(
    'QUARTERDECK_ORGANIZATION_NODES',
    nodeRules('*=*'),
    nodeRules,
    'Machines that the clusters of each organization may be on, in the same form, by their ids (the file node-id in the data directory of each).',
  ),
  dockerHost: setting(
    'DOCKER_HOST',
    '',
    text,
    'Docker Engine or Podman to use, also for building the images of Kubernetes clusters; without it the usual sockets are tried.',
  ),
  rateLimitPerHour: setting(
    'QUARTERDECK_RATE_LIMIT_PER_HOUR',
    1000,
    integer(0, 1_000_000_000),
    'Requests an hour per API token; 0 switches the limit off.',
  ),
  requestsInFlightPerCaller: setting(
    'QUARTERDECK_REQUESTS_IN_FLIGHT_PER_CALLER',
    200,
    integer(0, 1_000_000),
    'Requests of one token or user that a process serves at a time, waiting ones included, and besides them as many event streams and web sockets; more are answered 429. 0 switches the limit off.',
  ),
  requestsInFlightPerOrganization: setting(
    'QUARTERDECK_REQUESTS_IN_FLIGHT_PER_ORGANIZATION',
    400,
    integer(0, 1_000_000),
    'The same for all callers of an organization together.',
  ),
  builtInVariablePrefix: setting(
    'QUARTERDECK_BUILT_IN_VARIABLE_PREFIX',
    'QUARTERDECK_',
    prefix,
    'Prefix of built-in variables. Keys of other variables and secrets must not begin with it.',
  ),
  localGitRoots: setting(
    'QUARTERDECK_LOCAL_GIT_ROOTS',
    [EXAMPLES],
    folders,
    "Folders under which git URLs may be local paths, separated by colons; at first the project's own examples.",
  ),
  gitPollSeconds: setting(
    'QUARTERDECK_GIT_POLL_INTERVAL',
    60,
    integer(0, 86_400),
    'Seconds between two looks at a branch that services with `auto_deploy` follow; a branch whose webhook has called is looked at once an hour at most. 0 switches the looks off, except for those after a call that could not be read.',
  ),
  imagePollSeconds: setting(
    'QUARTERDECK_IMAGE_POLL_INTERVAL',
    300,
    integer(0, 86_400),
    'Seconds between two looks at a tag of a registry whose image services with `auto_deploy` run; 0 switches the looks off, except for those that a webhook of the registry calls for.',
  ),
  previewDays: setting(
    'QUARTERDECK_PREVIEW_DAYS',
    7,
    integer(0, 3650),
    'Days after the last news of a pull request when its preview is removed; 0 keeps it until the pull request is closed.',
  ),
  previewsPerOrganization: setting(
    'QUARTERDECK_PREVIEWS_PER_ORGANIZATION',
    20,
    integer(0, 10_000),
    'Environments of an organization that are previews of pull requests at a time; 0 makes none.',
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
  ecrUrl: setting(
    'QUARTERDECK_ECR_URL',
    'https://api.ecr.{region}.{domain}',
    template,
    "Address of the API of Amazon's registries (ECR); {domain} is amazonaws.com, or amazonaws.com.cn for regions in China.",
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
  outgoingAddresses: setting(
    'QUARTERDECK_OUTGOING_ADDRESSES',
    [] as string[],
    addresses,
    'IP addresses from which this installation calls git servers, registries, webhooks and mail servers, separated by commas. GET /ips answers them, for firewalls that let only known addresses in; without it the list is empty.',
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
    'Address under which people reach the API, for links and passkeys; without it http://host:port. Passkeys are bound to its host: with another host people need new ones.',
  ),
  proxyDomain: setting(
    'QUARTERDECK_PROXY_DOMAIN',
    'localhost',
    text,
    'Domain under which the proxy serves services: <service>-z<8>.<domain>.',
  ),
  reservedDomains: setting(
    'QUARTERDECK_RESERVED_DOMAINS',
    [] as string[],
    hostNames,
    'Domains that no organization may add as custom domains, with all names below them, separated by commas. The domain of the proxy, the host of QUARTERDECK_BASE_URL and localhost are always among them.',
  ),
  domainClaimDays: setting(
    'QUARTERDECK_DOMAIN_CLAIM_DAYS',
    7,
    integer(1, 365),
    'Days after which a custom domain without the TXT record that proves it is no longer looked up by itself.',
  ),
  domainGraceHours: setting(
    'QUARTERDECK_DOMAIN_GRACE_HOURS',
    72,
    integer(1, 8760),
    'Hours for which the TXT record of a proven custom domain may be missing before deployments stop routing the domain.',
  ),
  dnsServers: setting(
    'QUARTERDECK_DNS_SERVERS',
    [] as string[],
    dnsServers,
    "DNS servers that custom domains are looked up with, as addresses with or without a port, separated by commas; without it the machine's.",
  ),
  oidcIssuer: setting(
    'QUARTERDECK_OIDC_ISSUER',
    '',
    url('http:', 'https:'),
    'Identity provider for people; its keys are found by discovery. Without it people sign in with a password.',
  ),
  oidcAudience: setting('QUARTERDECK_OIDC_AUDIENCE', '', text, 'Audience that its tokens must carry.'),
  oidcGroupsClaim: setting(
    'QUARTERDECK_OIDC_GROUPS_CLAIM',
    '',
    text,
    'Claim of its tokens that names the groups of a person, such as groups or realm_access.roles; enterprise connections give roles by them. Groups are not read without it.',
  ),
  oidcGroupsOrganizations: setting(
    'QUARTERDECK_OIDC_GROUPS_ORGANIZATIONS',
    ['first'],
    organizationNames,
    'Organizations whose enterprise connections give roles by groups, separated by commas: ids, first (the one that the first start makes) or *. Their administrators can make everybody of the identity provider a member.',
  ),
  passwords: setting(
    'QUARTERDECK_PASSWORDS',
    'auto',
    oneOf('auto', 'true', 'false'),
    'Whether people may sign in with a name and a password, or with a passkey: auto where no identity provider is named. Without it their sessions and links are refused, too.',
  ),
  sessionDays: setting(
    'QUARTERDECK_SESSION_DAYS',
    30,
    integer(1, 365),
    'Days after which who has signed in with a password must do so again; after 7 days in which nothing uses the session in any case.',
  ),
  smtpUrl: setting(
    'QUARTERDECK_SMTP_URL',
    '',
    smtpServer,
    'Server that mail to people is sent through: smtp://user@smtp.example.com:587 (STARTTLS) or smtps://user@smtp.example.com:465. Without TLS only on this machine. Without it no mail is sent to people.',
    true,
  ),
  smtpPasswordFile: setting(
    'QUARTERDECK_SMTP_PASSWORD_FILE',
    '',
    absolutePath,
    'File with the password of its user, read for each mail; or the URL has the password.',
  ),
  smtpFrom: setting('QUARTERDECK_SMTP_FROM', '', mailAddress, 'Address that mail to people comes from.'),
  terraformStatePort: setting(
    'QUARTERDECK_TERRAFORM_STATE_PORT',
    8083,
    integer(0, 65535),
    'Port on which runs of Terraform reach the states that are kept here; 0 takes a free one. It is listened on while there are runs, on the address of this machine that they see; with QUARTERDECK_TERRAFORM_STATE_URL always, on every address.',
  ),
  terraformStateUrl: setting(
    'QUARTERDECK_TERRAFORM_STATE_URL',
    '',
    url('http:', 'https:'),
    'URL that leads to that port of the workers from where Terraform runs: for Kubernetes clusters, which need it, and a Docker Engine on another machine. Else it is found.',
  ),
  terraformPrograms: setting(
    'QUARTERDECK_TERRAFORM_PROGRAMS',
    '',
    text,
    'Folder with versions of Terraform and OpenTofu for host clusters: <folder>/terraform/1.11.4/terraform, <folder>/tofu/1.10.0/tofu; those of the PATH are found besides.',
  ),
  helm: setting(
    'QUARTERDECK_HELM',
    '',
    text,
    'Absolute path of the program helm (3.14 or later, not 4), which applies charts on Kubernetes clusters; without it the one of the usual PATH.',
  ),
  terraformImage: setting(
    'QUARTERDECK_TERRAFORM_IMAGE',
    'docker.io/hashicorp/terraform',
    text,
    'Image with Terraform for Docker and Kubernetes clusters, without its tag, which is the version.',
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
  localBaseImages: setting(
    'QUARTERDECK_LOCAL_BASE_IMAGES',
    [] as string[],
    imageNames,
    'Images that lie on the Docker Engine and that builds of every organization may start from although no registry is asked for them, separated by commas; a name without a tag stands for all its tags. For machines without a way to a registry. Every other image of a Dockerfile must be one that a registry lets the organization read.',
  ),
  databaseBackupDays: setting(
    'QUARTERDECK_DATABASE_BACKUP_DAYS',
    7,
    integer(1, 3650),
    'Days that the daily backups of managed databases are kept, and those before a delete or a restore.',
  ),
  copiesUrl: setting(
    'QUARTERDECK_COPIES_URL',
    '',
    url('http:', 'https:'),
    'Bucket of an S3-compatible store that encrypted backups of the installation and of databases are sent to, such as https://s3.eu-west-3.amazonaws.com/bucket or https://bucket.nyc3.digitaloceanspaces.com. None are sent without.',
  ),
  copiesFolder: setting(
    'QUARTERDECK_COPIES_FOLDER',
    'quarterdeck',
    objectFolder,
    'Folder of that bucket for the copies; several installations may share it.',
  ),
  copiesRegion: setting(
    'QUARTERDECK_COPIES_REGION',
    'us-east-1',
    text,
    'Region that requests to the store are signed for.',
  ),
  copiesAccessKeyId: setting(
    'QUARTERDECK_COPIES_ACCESS_KEY_ID',
    '',
    text,
    'Access key of an account that may list the bucket and read, write and delete objects in that folder.',
  ),
  copiesSecretAccessKey: setting('QUARTERDECK_COPIES_SECRET_ACCESS_KEY', '', text, 'Secret of that access key.', true),
  copyHours: setting('QUARTERDECK_COPY_HOURS', 24, integer(1, 720), 'Hours between two copies.'),
  copyDays: setting(
    'QUARTERDECK_COPY_DAYS',
    30,
    integer(1, 10_000),
    'Days that copies are kept; the newest three stay in any case.',
  ),
  copyCheckDays: setting(
    'QUARTERDECK_COPY_CHECK_DAYS',
    7,
    integer(0, 3650),
    'Days after which a new copy is fetched and restored into a scratch database, which shows that it can be read; 0 for never.',
  ),
  processLimit: setting(
    'QUARTERDECK_PROCESS_LIMIT',
    1024,
    integer(16, 4_000_000),
    'Processes and threads that one instance, execution or host build may have at a time, where control groups can be written.',
  ),
  checkoutLimitMb: setting(
    'QUARTERDECK_CHECKOUT_LIMIT_MB',
    4096,
    integer(1, 100_000_000),
    'Disk that one checkout may take, in MiB: the repository with its submodules and files of Git LFS.',
  ),
  sourceUploadMb: setting(
    'QUARTERDECK_SOURCE_UPLOAD_MB',
    64,
    integer(1, 1024),
    'Size of a folder that is uploaded as the source of an application, in MiB: as it comes, and as git packs it.',
  ),
  sourceUnpackedMb: setting(
    'QUARTERDECK_SOURCE_UNPACKED_MB',
    512,
    integer(1, 16_384),
    'Size of an uploaded folder once it is unpacked, in MiB.',
  ),
  sourceFiles: setting('QUARTERDECK_SOURCE_FILES', 20_000, integer(1, 200_000), 'Files of an uploaded folder.'),
  keptSourceUploads: setting(
    'QUARTERDECK_KEPT_SOURCE_UPLOADS',
    10,
    integer(1, 1000),
    'Deployments of each application whose uploaded folders are kept in the database, so that they can be built again.',
  ),
  buildLimitMb: setting(
    'QUARTERDECK_BUILD_LIMIT_MB',
    20_480,
    integer(1, 100_000_000),
    'Disk that one build on a host cluster may take, and size of an image that is built on a Docker cluster, in MiB.',
  ),
  diskReserveMb: setting(
    'QUARTERDECK_DISK_RESERVE_MB',
    512,
    integer(0, 100_000_000),
    'Free disk of a machine, in MiB, below which no checkout and no build begins and those under way are ended; 0 for none.',
  ),
  instanceDiskLimitMb: setting(
    'QUARTERDECK_INSTANCE_DISK_LIMIT_MB',
    10_240,
    integer(0, 100_000_000),
    'Disk that one instance or execution may write besides its volumes and its log, in MiB: an instance above it is started anew from its image, an execution is ended; 0 sets no limit.',
  ),
  organizationDiskLimitMb: setting(
    'QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB',
    0,
    integer(0, 1_000_000_000),
    'Disk of a machine that one organization may take, in MiB: volumes, images, checkouts, what instances write, and logs. Above it what would take more is refused, and nothing is ended; 0 sets no limit.',
  ),
  volumeLimitPercent: setting(
    'QUARTERDECK_VOLUME_LIMIT_PERCENT',
    150,
    integer(0, 10_000),
    'Share of its size, in percent, above which the service of a volume is stopped, so that the others of the machine go on; its files are kept. 0 stops none.',
  ),
  buildCacheLimitMb: setting(
    'QUARTERDECK_BUILD_CACHE_LIMIT_MB',
    20_480,
    integer(0, 100_000_000),
    'Build cache of a container engine, in MiB, above which what was used longest ago goes; 0 sets no limit.',
  ),
  publishedPorts: setting(
    'QUARTERDECK_PUBLISHED_PORTS',
    '30000-32767',
    portRange,
    'Ports of a machine on which services are published: public TCP and UDP ports of applications and containers, and databases with public accessibility. The ports of this program are left out. HTTP and gRPC go through the proxy instead.',
  ),
  organizationPorts: setting(
    'QUARTERDECK_ORGANIZATION_PORTS',
    200,
    integer(0, 65_535),
    'Published ports that one organization may have on all machines together.',
  ),
  workerSlots: setting('QUARTERDECK_WORKER_SLOTS', 8, integer(1, 1000), 'Deployments that one worker runs at a time.'),
  stepProgressSeconds: setting(
    'QUARTERDECK_STEP_PROGRESS_SECONDS',
    900,
    integer(10, 86_400),
    'Seconds after which a step of a deployment that shows no progress is ended.',
  ),
  buildSlots: setting(
    'QUARTERDECK_BUILD_SLOTS',
    2,
    integer(1, 100),
    'Builds that one worker runs at a time; organizations take turns.',
  ),
  checkoutSlots: setting(
    'QUARTERDECK_CHECKOUT_SLOTS',
    16,
    integer(1, 1000),
    'Services whose repository or chart one worker fetches at a time, at most half of them of one organization; organizations take turns. What an interrupted step fetches again comes besides.',
  ),
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
  formerLogHours: setting(
    'QUARTERDECK_INSTANCE_LOG_RETENTION_HOURS',
    72,
    integer(0, 8760),
    'Hours after the end of an instance for which its log is kept; 0 keeps none.',
  ),
  formerLogLimitMb: setting(
    'QUARTERDECK_INSTANCE_LOG_LIMIT_MB',
    50,
    integer(1, 1_000_000),
    'Megabytes of logs of ended instances of each service on a machine, compressed, above which the oldest go early.',
  ),
  podLogLimitMb: setting(
    'QUARTERDECK_POD_LOG_LIMIT_MB',
    5,
    integer(1, 1000),
    'Megabytes of logs of ended pods of each service on Kubernetes, compressed in the database, above which the oldest go early.',
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
    'Event streams that one caller may have open in one process, and besides them as many followed logs.',
  ),
  streams: setting(
    'QUARTERDECK_STREAMS',
    1000,
    integer(1, 100_000),
    'Event streams that one process serves at a time, and besides them as many followed logs.',
  ),
  socketsPerCaller: setting(
    'QUARTERDECK_SOCKETS_PER_CALLER',
    100,
    integer(1, 100_000),
    'Web sockets that one caller may have open in one process.',
  ),
  sockets: setting('QUARTERDECK_SOCKETS', 1000, integer(1, 100_000), 'Web sockets that one process serves at a time.'),
  socketOrigins: setting(
    'QUARTERDECK_SOCKET_ORIGINS',
    [] as string[],
    origins,
    'Origins, such as https://console.example.com, whose pages may open web sockets besides those of the host of the API itself, separated by commas. * is every origin.',
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
