import type { Shape } from '#kernel/parsing/formats.ts';
import { signAws, type AwsKeys } from '#platform/aws/signature.ts';
import type { OpenAccess } from '#resources/cluster/index.ts';
import {
  allNames,
  ask,
  decoded,
  listOf,
  notAllowed,
  notLetIn,
  notThere,
  notUnderstood,
  SecretManagerError,
  textOf,
  type ManagerAnswer,
  type ManagerParts,
  type SecretManager,
} from '#resources/secret-manager-access/managers/manager.ts';

/** Parts of the answers of both services. */
const SHAPE: Shape = {
  SecretList: [{ Name: true }],
  Parameters: [{ Name: true }],
  Parameter: { Value: 'text' },
  SecretString: 'text',
  SecretBinary: 'text',
  NextToken: 'text',
  __type: true,
};

/** Asks for an action of one of the two services. */
type Call = (action: string, input: object) => Promise<any>;

/** AWS Secrets Manager (API of 2017-10-17). */
export const openAwsSecretsManager = (access: OpenAccess, parts: ManagerParts): SecretManager => {
  const call = callOf(access, parts, 'secretsmanager', 'secretsmanager');
  return {
    label: `AWS Secrets Manager in ${access.endpoint.region}`,
    list: (prefix) =>
      allNames<string>(prefix, async (token) => {
        const filters = prefix === '' ? {} : { Filters: [{ Key: 'name', Values: [prefix] }] };
        const body = await call('ListSecrets', { MaxResults: 100, ...filters, ...(token ? { NextToken: token } : {}) });
        return { names: listOf(body.SecretList).map((one) => textOf(one.Name)), next: body.NextToken };
      }),
    read: async (name) => {
      const body = await call('GetSecretValue', { SecretId: name });
      return typeof body.SecretString === 'string' ? body.SecretString : decoded(body.SecretBinary);
    },
  };
};

/** Parameter Store of AWS Systems Manager (API of 2014-11-06). */
export const openAwsParameterStore = (access: OpenAccess, parts: ManagerParts): SecretManager => {
  const call = callOf(access, parts, 'ssm', 'AmazonSSM');
  return {
    label: `AWS Parameter Store in ${access.endpoint.region}`,
    list: (prefix) =>
      allNames<string>(prefix, async (token) => {
        const filters =
          prefix === '' ? {} : { ParameterFilters: [{ Key: 'Name', Option: 'BeginsWith', Values: [prefix] }] };
        const page = { MaxResults: 50, ...filters, ...(token ? { NextToken: token } : {}) };
        const body = await call('DescribeParameters', page);
        return { names: listOf(body.Parameters).map((one) => textOf(one.Name)), next: body.NextToken };
      }),
    read: async (name) => textOf((await call('GetParameter', { Name: name, WithDecryption: true })).Parameter?.Value),
  };
};

function callOf(access: OpenAccess, parts: ManagerParts, service: string, target: string): Call {
  const region = access.endpoint.region!;
  const url = urlOf(parts, service, region);
  let credentials: Promise<AwsKeys> | undefined;
  return async (action, input) => {
    credentials ??= credentialsOf(access, parts, region);
    const body = JSON.stringify(input);
    const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `${target}.${action}` };
    const signed = await signAws(
      { method: 'POST', url, headers, body, service, region },
      await credentials,
      parts.clock.now(),
    );
    const answer = await ask(parts, url, { method: 'POST', headers: signed, body }, SHAPE);
    if (answer.status !== 200) throw failureOf(answer);
    if (typeof answer.body !== 'object' || answer.body === null) throw notUnderstood();
    return answer.body;
  };
}

/** Regions in China have a domain of their own. */
function urlOf({ settings }: ManagerParts, service: string, region: string): string {
  const url = settings.awsUrl.replaceAll('{service}', service).replaceAll('{region}', region);
  const china = region.startsWith('cn-') && new URL(url).hostname.endsWith('.amazonaws.com');
  return `${china ? url.replace('.amazonaws.com', '.amazonaws.com.cn') : url}/`;
}

/** Returns the keys of the access, or those of the role that it names. */
async function credentialsOf({ authentication }: OpenAccess, parts: ManagerParts, region: string) {
  if (authentication.mode === 'AWS_STATIC_CREDENTIALS' && authentication.secret_key)
    return { accessKeyId: authentication.access_key!, secretAccessKey: authentication.secret_key };
  if (authentication.mode === 'AWS_ROLE_ARN') return assumeRole(parts, authentication.role_arn!, region);
  throw new SecretManagerError('the access has no credentials of its own: give it access keys or a role');
}

/**
 * Assumes a role with the installation's own key. The external id is the organization's: a role that asks for it cannot be used by
 * another organization of the installation that names it (AWS documentation, *The confused deputy problem*).
 */
async function assumeRole(parts: ManagerParts, roleArn: string, region: string): Promise<AwsKeys> {
  const { awsAccessKey: accessKeyId, awsSecretKey: secretAccessKey } = parts.settings;
  if (!accessKeyId || !secretAccessKey)
    throw new SecretManagerError(
      'roles are assumed with a key of the installation, and it has none: set QUARTERDECK_AWS_ACCESS_KEY and QUARTERDECK_AWS_SECRET_KEY, or give the access keys of its own',
    );
  const url = urlOf(parts, 'sts', region);
  const body = new URLSearchParams({
    Action: 'AssumeRole',
    Version: '2011-06-15',
    RoleArn: roleArn,
    RoleSessionName: 'quarterdeck',
    DurationSeconds: '900',
    ExternalId: parts.organizationId,
  }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const request = { method: 'POST' as const, url, headers, body, service: 'sts', region };
  const signed = await signAws(request, { accessKeyId, secretAccessKey }, parts.clock.now());
  // STS answers with XML.
  const answer = await ask(parts, url, { method: 'POST', headers: signed, body }, null);
  const text = answer.bytes.toString();
  const part = (name: string) => new RegExp(`<${name}>([!-;=-~]+)</${name}>`).exec(text)?.[1];
  const [assumed, secret, sessionToken] = [part('AccessKeyId'), part('SecretAccessKey'), part('SessionToken')];
  if (answer.status === 200 && assumed && secret && sessionToken)
    return { accessKeyId: assumed, secretAccessKey: secret, sessionToken };
  throw new SecretManagerError(`the role ${roleArn} cannot be assumed (${part('Code') ?? answer.status})`);
}

/** Tells only the name of a failure. Texts of AWS on signatures quote the request, and with it the session's token. */
function failureOf({ status, body }: ManagerAnswer): SecretManagerError {
  const type = String(body?.__type ?? '')
    .split('#')
    .at(-1)!;
  if (/^(ResourceNotFoundException|ParameterNotFound)$/.test(type)) return notThere();
  if (type === 'AccessDeniedException') return notAllowed();
  if (/Signature|UnrecognizedClient|InvalidClientToken|ExpiredToken|MissingAuthentication/.test(type))
    return notLetIn();
  return new SecretManagerError(`it answered ${status}${/^\w+$/.test(type) ? ` (${type})` : ''}`);
}
