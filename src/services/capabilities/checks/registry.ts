import { badGateway, badRequest } from '#kernel/errors.ts';
import { OutgoingError, type HttpClient, type OutgoingAnswer } from '#platform/http-client/index.ts';

/** A registry and how it is entered. */
export interface RegistryAccess {
  /** `https://registry.acme.net`, or a bare host. */
  url: string;
  credentials: { username: string; password: string } | null;
}

/** An image in a registry, as its HTTP interface names it. */
export interface ImageReference {
  /** Origin of the registry's interface. */
  base: string;
  name: string;
  tag: string;
  /** How people write it. */
  text: string;
}

const HUB = 'https://registry-1.docker.io';
const HUB_HOSTS = new Set([
  'docker.io',
  'index.docker.io',
  'hub.docker.com',
  'registry-1.docker.io',
  'registry.hub.docker.com',
]);

const MANIFESTS = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** Where an image is: in the given registry, else in the one that its first part names, else on Docker Hub. */
export function locateImage(imageName: string, tag: string, registryUrl: string | null): ImageReference {
  const separator = tag.startsWith('sha256:') ? '@' : ':';
  const text = `${imageName}${separator}${tag}`;
  const [first = '', ...rest] = imageName.split('/');
  const namesHost = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  const base = originOf(registryUrl ?? (namesHost ? first : HUB));
  const within =
    registryUrl || namesHost ? (namesHost && originOf(first) === base ? rest.join('/') : imageName) : imageName;
  const name = base === HUB && !within.includes('/') ? `library/${within}` : within;
  return { base, name, tag, text };
}

/** Docker's own rule: the machine itself is spoken to without TLS, everything else with it, unless the URL says otherwise. */
function originOf(registry: string): string {
  const local = /^(localhost|127\.\d+\.\d+\.\d+)(:\d+)?$/.test(registry);
  const address = /^https?:\/\//.test(registry) ? registry : `${local ? 'http' : 'https'}://${registry}`;
  if (!URL.canParse(address)) throw badRequest(`${registry} is not the address of a registry.`);
  const url = new URL(address);
  return HUB_HOSTS.has(url.hostname) ? HUB : url.origin;
}

/**
 * Asks the registry for the image's manifest (OCI distribution, *Pulling manifests*), with a token where it wants one. Throws 400 when the
 * registry has no such image or does not let us in, 502 when it gives no answer.
 */
export async function checkImage(
  http: HttpClient,
  image: ImageReference,
  credentials: RegistryAccess['credentials'],
  signal: AbortSignal,
): Promise<void> {
  const ask = (authorization?: string) =>
    send(http, image, `${image.base}/v2/${image.name}/manifests/${encodeURIComponent(image.tag)}`, signal, {
      accept: MANIFESTS,
      ...(authorization ? { authorization } : {}),
    });
  let answer = await ask();
  if (answer.status === 401) {
    const authorization = await authorize(http, image, answer, credentials, signal);
    if (authorization) answer = await ask(authorization);
  }
  if (answer.status === 200) return;
  if (answer.status === 401 || answer.status === 403)
    throw badRequest(
      `The registry does not let us read ${image.text}: name a registry with credentials that may (registry_id).`,
    );
  if (answer.status === 404) throw badRequest(`The registry has no image ${image.text}: check image_name and tag.`);
  throw badGateway(`The registry of ${image.text} answered ${answer.status}.`);
}

/** The header that the registry's challenge asks for; undefined where there is nothing to answer it with. */
async function authorize(
  http: HttpClient,
  image: ImageReference,
  challenge: OutgoingAnswer,
  credentials: RegistryAccess['credentials'],
  signal: AbortSignal,
): Promise<string | undefined> {
  const basic = credentials
    ? `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
    : undefined;
  const wanted = String(challenge.headers['www-authenticate'] ?? '');
  if (/^basic\b/i.test(wanted)) return basic;
  const parameters = new Map([...wanted.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value!] as const));
  const realm = parameters.get('realm');
  if (!/^bearer\b/i.test(wanted) || !realm || !URL.canParse(realm)) return undefined;
  const url = new URL(realm);
  // A registry behind TLS must not send the password over the wire in the clear.
  const plain = image.base.startsWith('https:') && url.protocol !== 'https:';
  url.searchParams.set('scope', parameters.get('scope') ?? `repository:${image.name}:pull`);
  const service = parameters.get('service');
  if (service) url.searchParams.set('service', service);
  const answer = await send(http, image, url.href, signal, basic && !plain ? { authorization: basic } : {});
  if (answer.status !== 200) return undefined;
  const token = readToken(answer.body.toString());
  return token === undefined ? undefined : `Bearer ${token}`;
}

function readToken(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as { token?: unknown; access_token?: unknown } | null;
    const token = body?.token ?? body?.access_token;
    return typeof token === 'string' ? token : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function send(
  http: HttpClient,
  image: ImageReference,
  url: string,
  signal: AbortSignal,
  headers: Record<string, string>,
): Promise<OutgoingAnswer> {
  try {
    return await http.request(url, { headers, signal });
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    const message = `The registry of ${image.text} cannot be asked: ${error.message}`;
    throw error.failure === 'forbidden_address' || error.failure === 'invalid_url'
      ? badRequest(message)
      : badGateway(message, error);
  }
}
