import type { Shape } from '#kernel/parsing/formats.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { RegistryClient } from '#platform/oci/client.ts';
import { limited, RegistryError } from '#platform/oci/errors.ts';
import { isDockerHub, nameWithin, parseRegistry, type RegistryAddress } from '#platform/oci/reference.ts';
import { readAnswer, request, type Credentials, type Session } from '#platform/oci/session.ts';

/** Registry and its credentials. */
export interface RegistryAccess {
  /** Organization that asks: its answers are read one at a time. */
  organizationId: string;
  /** `https://registry.acme.net`, or a bare host, with the prefix of its names, if any. */
  url: string;
  credentials: Credentials | null;
  skipTlsVerification?: boolean;
}

export interface FoundImage {
  /** Name within the registry of that URL. */
  name: string;
  versions: string[];
}

/** Images that one search answers at most: each takes a request for its tags. */
const MAX_FOUND = 50;
const AT_ONCE = 5;
/** Address of Docker's own search, which `docker search` asks. */
const HUB_SEARCH = 'https://index.docker.io/v1/search';
const HUB_BYTES = 1024 * 1024;

/** Creates a client for the registry. */
export function openRegistry(http: HttpClient, access: RegistryAccess, signal?: AbortSignal): RegistryClient {
  return new RegistryClient(sessionOf(http, access, parseRegistry(access.url), signal));
}

const sessionOf = (http: HttpClient, access: RegistryAccess, at: RegistryAddress, signal?: AbortSignal): Session => ({
  http,
  organizationId: access.organizationId,
  base: at.base,
  host: at.host,
  credentials: access.credentials,
  ...(access.skipTlsVerification ? { skipTlsVerification: true } : {}),
  ...(signal ? { signal } : {}),
});

/** Finds an image with its tags; undefined if the registry has none of that name. */
export async function findImage(
  http: HttpClient,
  access: RegistryAccess,
  imageName: string,
  signal?: AbortSignal,
): Promise<FoundImage | undefined> {
  const at = parseRegistry(access.url);
  const client = new RegistryClient(sessionOf(http, access, at, signal));
  return tagged(client, imageName, nameWithin(at, imageName));
}

/**
 * Images whose name holds the text, with their tags, at most 50. A registry that shows no catalog is asked for an image of exactly
 * that name.
 */
export async function searchImages(
  http: HttpClient,
  access: RegistryAccess,
  text: string,
  signal?: AbortSignal,
): Promise<FoundImage[]> {
  const at = parseRegistry(access.url);
  const session = sessionOf(http, access, at, signal);
  const client = new RegistryClient(session);
  const names = await namesOf(client, session, at, text.trim().toLowerCase());
  const found: FoundImage[] = [];
  for (let n = 0; n < names.length; n += AT_ONCE) {
    const some = names.slice(n, n + AT_ONCE).map((name) => tagged(client, name, nameWithin(at, name)));
    // Deleted since the catalog was written, or shown there and not readable by us.
    found.push(...(await Promise.all(some)).filter((image) => image !== undefined));
  }
  return found;
}

async function namesOf(client: RegistryClient, session: Session, at: RegistryAddress, text: string): Promise<string[]> {
  if (isDockerHub(at.base) && text !== '') return searchHub(session, text);
  try {
    return await listNames(client, at, (name) => name.includes(text), MAX_FOUND);
  } catch (error) {
    if (error instanceof RegistryError && error.failure === 'unsupported' && text !== '') return [text];
    throw error;
  }
}

/**
 * Returns the names in a registry's catalog below its prefix, without that. Throws `unsupported` if the catalog is hidden, which many
 * show to their administrators only, and `unauthorized` if the registry refuses the credentials altogether.
 */
export async function listNames(
  client: RegistryClient,
  at: RegistryAddress,
  wanted: (name: string) => boolean,
  limit: number,
): Promise<string[]> {
  const hidden = `${isDockerHub(at.base) ? 'Docker Hub' : `The registry ${at.host}`} does not list what it has: name it, or search for it.`;
  if (isDockerHub(at.base)) throw new RegistryError('unsupported', hidden);
  const inside = at.prefix === '' ? '' : `${at.prefix}/`;
  try {
    const names = await client.catalog((name) => name.startsWith(inside) && wanted(name), limit);
    return names.map((name) => name.slice(inside.length));
  } catch (error) {
    if (!(error instanceof RegistryError) || !['unauthorized', 'not_found', 'unexpected'].includes(error.failure))
      throw error;
    // Credentials that are wrong are wrong for everything.
    await client.ping();
    throw new RegistryError('unsupported', hidden, error);
  }
}

async function searchHub(session: Session, text: string): Promise<string[]> {
  const url = `${HUB_SEARCH}?${new URLSearchParams({ q: text, n: '25' })}`;
  const answer = await request(session, url, { maxBytes: HUB_BYTES });
  if (answer.status === 429) throw limited(session.host);
  const shape: Shape = { results: [{ name: true }] };
  const results = answer.status === 200 ? (await readAnswer(session, answer, { shape }))?.['results'] : undefined;
  if (!results)
    throw new RegistryError('unreachable', `The search of Docker Hub answered ${answer.status} and no list.`);
  return (results as ({ name?: unknown } | null)[]).map((found) => String(found?.name)).slice(0, MAX_FOUND);
}

/** Finds an image with its tags; undefined if there is none, or if these credentials may not read it. */
async function tagged(client: RegistryClient, name: string, within: string): Promise<FoundImage | undefined> {
  try {
    return { name, versions: await client.tags(within) };
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    if (error.failure === 'not_found') return undefined;
    if (error.failure !== 'unauthorized') throw error;
    // Many say 401 or 403 of what they do not have; but wrong credentials are to be heard of.
    await client.ping();
    return undefined;
  }
}
