import { signAws, type AwsKeys } from '#platform/aws/signature.ts';
import { OutgoingError, type HttpClient } from '#platform/http-client/index.ts';
import { RegistryError, type Credentials } from '#platform/oci/index.ts';

/** Limit of an answer: those with passwords have some 3 KiB. */
const MAX_BYTES = 64 * 1024;

/**
 * A password for Amazon's registries of a region, good for twelve hours: what `aws ecr get-login-password` asks for
 * (`GetAuthorizationToken`). Throws RegistryError.
 */
export async function ecrLogin(
  http: HttpClient,
  { template, region }: { template: string; region: string },
  keys: AwsKeys,
  at: Date,
  signal?: AbortSignal,
): Promise<Credentials> {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const url = `${template.replaceAll('{region}', region).replaceAll('{domain}', domain)}/`;
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amz-target': 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken',
  };
  const request = { method: 'POST' as const, url, headers, body: '{}', region, service: 'ecr' };
  try {
    const answer = await http.request(url, {
      method: 'POST',
      headers: await signAws(request, keys, at),
      body: request.body,
      maxBytes: MAX_BYTES,
      ...(signal ? { signal } : {}),
    });
    if (answer.status === 400 || answer.status === 403)
      throw new RegistryError(
        'unauthorized',
        `AWS does not take the access key in ${region}: ${reasonOf(answer.body)}.`,
      );
    const login = answer.status === 200 ? loginIn(answer.body) : undefined;
    if (!login) throw new RegistryError('unreachable', `AWS answered ${answer.status} when asked for a password.`);
    return login;
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    throw new RegistryError('unreachable', `AWS cannot be asked for a password: ${error.message}`, error);
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
