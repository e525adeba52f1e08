import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { jwtVerify } from 'jose';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { signAws, type AwsKeys } from '#platform/aws/signature.ts';

interface Asked {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
  body: string;
}

interface Answer {
  status: number;
  body?: unknown;
}

/** APIs of AWS, Google Cloud, Scaleway and Vault on one local server, each under a path of its own. */
export interface PretendedManagers {
  origin: string;
  /** Secrets that each manager holds, by name. */
  secrets: Record<string, string>;
  pageSize: number;
  requests: { method: string; path: string; action: string; body: string }[];
  instead: Answer | undefined;
  /** Called instead of any answer while it is set. */
  hang: (() => void) | undefined;
  settings(): Record<string, string>;
  /** Returns the key of the service account that Google accepts. */
  serviceAccount(): string;
}

export const AWS_KEYS: AwsKeys = { accessKeyId: 'AKIATEST', secretAccessKey: 'aws-secret-key-0123456789' };
const INSTALLATION_KEYS: AwsKeys = { accessKeyId: 'AKIAOURS', secretAccessKey: 'installation-key-0123456789' };
/** AWS role that yields the credentials `ASSUMED`; the external id is required. */
export const ROLE = { arn: 'arn:aws:iam::123456789012:role/reader', externalId: '' };
const ASSUMED: AwsKeys = {
  accessKeyId: 'ASIAROLE',
  secretAccessKey: 'role-key-0123456789',
  sessionToken: 'role-session',
};
export const SCALEWAY = { projectId: '11111111-1111-4111-8111-111111111111', secretKey: 'scaleway-key' };
export const VAULT = { token: 'vault-token', roleId: 'role', secretId: 'vault-secret-id', namespace: 'team/a' };
export const GCP_PROJECT = 'acme-prod';
const EMAIL = 'reader@acme-prod.iam.gserviceaccount.com';

/** Starts a server that answers as the providers document it, and checks the proof of identity. Its address is known once tests run. */
export function usePretendedManagers(port: number): PretendedManagers {
  const origin = `http://127.0.0.1:${port}`;
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const managers = { origin } as PretendedManagers;
  managers.settings = () => ({
    QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8',
    QUARTERDECK_AWS_URL: `${origin}/aws/{region}/{service}`,
    QUARTERDECK_AWS_ACCESS_KEY: INSTALLATION_KEYS.accessKeyId,
    QUARTERDECK_AWS_SECRET_KEY: INSTALLATION_KEYS.secretAccessKey,
    QUARTERDECK_GCP_SECRETS_URL: `${origin}/gcp`,
    QUARTERDECK_SCALEWAY_URL: `${origin}/scaleway`,
  });
  managers.serviceAccount = () =>
    JSON.stringify({
      type: 'service_account',
      client_email: EMAIL,
      private_key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      token_uri: `${origin}/gcp/token`,
    });
  const server = createServer(async (request, response) => {
    const asked = {
      method: request.method!,
      url: new URL(request.url!, origin),
      headers: request.headers,
      body: await text(request),
    };
    const action = String(request.headers['x-amz-target'] ?? '');
    managers.requests.push({
      method: asked.method,
      path: asked.url.pathname + asked.url.search,
      action,
      body: asked.body,
    });
    if (managers.hang) return managers.hang();
    const { status, body } = managers.instead ?? (await answerTo(managers, asked, keys.publicKey));
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
  });
  beforeAll(() => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve)));
  beforeEach(
    () => void Object.assign(managers, { secrets: {}, pageSize: 2, requests: [], instead: undefined, hang: undefined }),
  );
  afterAll(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return managers;
}

function answerTo(managers: PretendedManagers, asked: Asked, key: KeyObject): Answer | Promise<Answer> {
  const [, provider] = asked.url.pathname.split('/');
  if (provider === 'aws') return aws(managers, asked);
  if (provider === 'gcp') return gcp(managers, asked, key);
  if (provider === 'scaleway') return scaleway(managers, asked);
  return vault(managers, asked);
}

const base64 = (value: string): string => Buffer.from(value).toString('base64');
const failure = (type: string): Answer => ({ status: 400, body: { __type: `com.amazonaws#${type}`, message: type } });

/** Returns a page of names. The token is opaque and names its first element. */
function pageOf({ secrets, pageSize }: PretendedManagers, prefix: string, token: unknown) {
  const from = Number(token ?? 0);
  const names = Object.keys(secrets).filter((name) => name.startsWith(prefix));
  const next = from + pageSize < names.length ? String(from + pageSize) : undefined;
  return { names: names.slice(from, from + pageSize), next };
}

async function isSigned({ method, url, headers, body }: Asked, credentials: AwsKeys): Promise<boolean> {
  const [, region, service] = url.pathname.split('/').slice(1);
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? [];
  const own = ['host', 'x-amz-date', 'x-amz-security-token'];
  const sent = Object.fromEntries(
    names.filter((name) => !own.includes(name)).map((name) => [name, String(headers[name])]),
  );
  const at = new Date(
    String(headers['x-amz-date']).replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3:$4:$5Z'),
  );
  if (Math.abs(at.getTime() - Date.now()) > 300_000) return false;
  const request = { method: method as 'POST', url: url.href, headers: sent, body, service: service!, region: region! };
  return (await signAws(request, credentials, at)).authorization === headers.authorization;
}

async function aws(managers: PretendedManagers, asked: Asked): Promise<Answer> {
  const service = asked.url.pathname.split('/')[3];
  if (service === 'sts') return sts(asked);
  const role = asked.headers['x-amz-security-token'] === ASSUMED.sessionToken;
  if (!(await isSigned(asked, role ? ASSUMED : AWS_KEYS))) return failure('InvalidSignatureException');
  const input = JSON.parse(asked.body);
  const name = input.SecretId ?? input.Name;
  const value = managers.secrets[name];
  switch (asked.headers['x-amz-target']) {
    case 'secretsmanager.ListSecrets': {
      const { names, next } = pageOf(managers, input.Filters?.[0].Values[0] ?? '', input.NextToken);
      return {
        status: 200,
        body: { SecretList: names.map((Name) => ({ Name, ARN: `arn:${Name}` })), NextToken: next },
      };
    }
    case 'AmazonSSM.DescribeParameters': {
      const { names, next } = pageOf(managers, input.ParameterFilters?.[0].Values[0] ?? '', input.NextToken);
      return {
        status: 200,
        body: { Parameters: names.map((Name) => ({ Name, Type: 'SecureString' })), NextToken: next },
      };
    }
    case 'secretsmanager.GetSecretValue':
      if (name === 'forbidden') return failure('AccessDeniedException');
      if (value === undefined) return failure('ResourceNotFoundException');
      return {
        status: 200,
        body: {
          Name: name,
          VersionId: 'v1',
          ...(name === 'binary' ? { SecretBinary: value } : { SecretString: value }),
        },
      };
    case 'AmazonSSM.GetParameter':
      if (value === undefined || input.WithDecryption !== true) return failure('ParameterNotFound');
      return { status: 200, body: { Parameter: { Name: name, Type: 'SecureString', Value: value, Version: 3 } } };
    default:
      return failure('UnknownOperationException');
  }
}

async function sts(asked: Asked): Promise<Answer> {
  const form = new URLSearchParams(asked.body);
  const allowed = form.get('RoleArn') === ROLE.arn && form.get('ExternalId') === ROLE.externalId;
  if (!(await isSigned(asked, INSTALLATION_KEYS)) || !allowed)
    return { status: 403, body: '<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>' };
  const { accessKeyId, secretAccessKey, sessionToken } = ASSUMED;
  const credentials = `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken>`;
  const result = `<AssumeRoleResult><Credentials>${credentials}</Credentials></AssumeRoleResult>`;
  return { status: 200, body: `<AssumeRoleResponse>${result}</AssumeRoleResponse>` };
}

async function gcp(managers: PretendedManagers, { url, headers, body }: Asked, key: KeyObject): Promise<Answer> {
  if (url.pathname === '/gcp/token') {
    const assertion = new URLSearchParams(body).get('assertion') ?? '';
    const verified = await jwtVerify(assertion, key, { issuer: EMAIL, audience: `${managers.origin}/gcp/token` }).catch(
      () => null,
    );
    return verified ? { status: 200, body: { access_token: 'gcp-token', expires_in: 3599 } } : { status: 400 };
  }
  if (headers.authorization !== 'Bearer gcp-token') return { status: 401 };
  const root = `/gcp/v1/projects/${GCP_PROJECT}/secrets`;
  if (url.pathname === root) {
    // A filter matches anywhere in a name.
    const part = url.searchParams.get('filter')?.replace('name:', '') ?? '';
    const matching = Object.fromEntries(Object.entries(managers.secrets).filter(([name]) => name.includes(part)));
    const { names, next } = pageOf({ ...managers, secrets: matching }, '', url.searchParams.get('pageToken'));
    return {
      status: 200,
      body: { secrets: names.map((name) => ({ name: `projects/1/secrets/${name}` })), nextPageToken: next },
    };
  }
  const name = new RegExp(`^${root}/([^/]+)/versions/latest:access$`).exec(url.pathname)?.[1] ?? '';
  const value = managers.secrets[name];
  if (value === undefined) return { status: 404 };
  return { status: 200, body: { name: `projects/1/secrets/${name}/versions/4`, payload: { data: base64(value) } } };
}

function scaleway(managers: PretendedManagers, { url, headers }: Asked): Answer {
  if (headers['x-auth-token'] !== SCALEWAY.secretKey) return { status: 401 };
  if (url.searchParams.get('project_id') !== SCALEWAY.projectId) return { status: 403 };
  const root = '/scaleway/secret-manager/v1beta1/regions/fr-par';
  if (url.pathname === `${root}/secrets`) {
    const size = Number(url.searchParams.get('page_size'));
    const from = (Number(url.searchParams.get('page')) - 1) * size;
    const secrets = Object.keys(managers.secrets).map((name) => ({
      name: name.split('/').at(-1),
      path: `/${name.split('/').slice(0, -1).join('/')}`,
    }));
    return { status: 200, body: { secrets: secrets.slice(from, from + size), total_count: secrets.length } };
  }
  const { secret_path: path, secret_name: name } = Object.fromEntries(url.searchParams);
  const value = managers.secrets[`${path}/${name}`.replace(/^\/+/, '')];
  if (url.pathname !== `${root}/secrets-by-path/versions/latest/access` || value === undefined) return { status: 404 };
  return { status: 200, body: { secret_id: 'x', revision: 2, data: base64(value) } };
}

/** Answers for Vault. Its secrets are JSON objects; the KV engine is mounted at `kv/apps`. */
function vault(managers: PretendedManagers, { url, headers, body, method }: Asked): Answer {
  if (headers['x-vault-namespace'] !== VAULT.namespace) return { status: 403 };
  if (url.pathname === '/v1/auth/approle/login' && method === 'POST') {
    const { role_id, secret_id } = JSON.parse(body);
    const right = role_id === VAULT.roleId && secret_id === VAULT.secretId;
    return right ? { status: 200, body: { auth: { client_token: VAULT.token } } } : { status: 400 };
  }
  if (headers['x-vault-token'] !== VAULT.token) return { status: 403 };
  const [, kind, name] = /^\/v1\/kv\/apps\/(data|metadata)\/(.*)$/.exec(decodeURIComponent(url.pathname)) ?? [];
  if (kind === 'data') {
    const value = managers.secrets[name!];
    if (value === undefined) return { status: 404, body: { errors: [] } };
    return { status: 200, body: { data: { data: JSON.parse(value), metadata: { version: 7 } } } };
  }
  const inside = Object.keys(managers.secrets)
    .filter((one) => one.startsWith(name ?? ''))
    .map((one) => one.slice(name!.length));
  const keys = [...new Set(inside.map((one) => (one.includes('/') ? `${one.split('/')[0]}/` : one)))];
  return kind && keys.length > 0 ? { status: 200, body: { data: { keys } } } : { status: 404, body: { errors: [] } };
}
