import { signAws, type AwsKeys } from '#platform/aws/signature.ts';
import { OutgoingError, type HttpClient } from '#platform/http-client/index.ts';
import { RegistryError, type Credentials } from '#platform/oci/index.ts';

/** Limit of an answer: those with passwords have some 3 KiB. */
const MAX_BYTES = 64 * 1024;

/** Registries of Amazon in a region, as their API is asked. */
export interface EcrApi {
  http: HttpClient;
  /** Setting with the address of the API, in which `{region}` and `{domain}` are filled in. */
  template: string;
  region: string;
  keys: AwsKeys;
  at: Date;
  signal?: AbortSignal;
}

/**
 * Returns a password for Amazon's registries of a region, good for twelve hours: what `aws ecr get-login-password` asks for
 * (`GetAuthorizationToken`). Throws RegistryError.
 */
export async function ecrLogin(api: EcrApi): Promise<Credentials> {
  const answer = await ask(api, 'GetAuthorizationToken', {});
  if (answer.status === 400 || answer.status === 403)
    throw new RegistryError(
      'unauthorized',
      `AWS does not take the access key in ${api.region}: ${reasonOf(answer.body)}.`,
    );
  const login = answer.status === 200 ? loginIn(answer.body) : undefined;
  if (!login) throw new RegistryError('unreachable', `AWS answered ${answer.status} when asked for a password.`);
  return login;
}

/** Creates a repository, which takes no image before that (`CreateRepository`). Succeeds if it exists. Throws RegistryError. */
export async function createEcrRepository(api: EcrApi, name: string, tags: Record<string, string>): Promise<void> {
  const tagList = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  const answer = await ask(api, 'CreateRepository', { repositoryName: name, tags: tagList });
  if (answer.status === 200 || reasonOf(answer.body) === 'RepositoryAlreadyExistsException') return;
  const failure = answer.status < 500 ? 'unauthorized' : 'unreachable';
  throw new RegistryError(
    failure,
    `AWS does not create the repository ${name} in ${api.region}: ${reasonOf(answer.body)}. Give the access key the right ecr:CreateRepository.`,
  );
}

async function ask({ http, template, region, keys, at, signal }: EcrApi, action: string, body: object) {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const url = `${template.replaceAll('{region}', region).replaceAll('{domain}', domain)}/`;
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amz-target': `AmazonEC2ContainerRegistry_V20150921.${action}`,
  };
  const request = { method: 'POST' as const, url, headers, body: JSON.stringify(body), region, service: 'ecr' };
  try {
    return await http.request(url, {
      method: 'POST',
      headers: await signAws(request, keys, at),
      body: request.body,
      maxBytes: MAX_BYTES,
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    throw new RegistryError('unreachable', `AWS cannot be asked: ${error.message}`, error);
  }
}

/** The token is `AWS:<password>` in base64. */
function loginIn(body: Buffer): Credentials | undefined {
  const { authorizationData } = parse(body) as { authorizationData?: { authorizationToken?: unknown }[] };
  const token = authorizationData?.[0]?.authorizationToken;
  if (typeof token !== 'string') return undefined;
  const [username, ...password] = Buffer.from(token, 'base64').toString().split(':');
  return username && password.length > 0 ? { username, password: password.join(':') } : undefined;
}

/** `UnrecognizedClientException`, without the text beside it, which may quote what was sent. */
function reasonOf(body: Buffer): string {
  const type = (parse(body) as { __type?: unknown }).__type;
  return typeof type === 'string' && /^[\w.#]{1,200}$/.test(type) ? type.split('#').at(-1)! : 'no reason was given';
}

function parse(body: Buffer): object {
  try {
    return (JSON.parse(body.toString()) as object | null) ?? {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
