import type { Shape, ShapeOptions } from '#kernel/parsing/formats.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import {
  OutgoingError,
  requestFollowing,
  type HttpClient,
  type OutgoingAnswer,
  type OutgoingRequest,
} from '#platform/http-client/index.ts';
import { parseChallenge, type Challenge } from '#platform/oci/challenge.ts';
import { limited, RegistryError } from '#platform/oci/errors.ts';

export interface Credentials {
  username: string;
  password: string;
}

/** Connection to a registry, with credentials. */
export interface Session {
  http: HttpClient;
  organizationId: string;
  /** Origin of its HTTP interface. */
  base: string;
  /** Name of the registry in messages. */
  host: string;
  credentials: Credentials | null;
  /** True if any certificate is accepted, because the owner of the registry wants it so. */
  skipTlsVerification?: boolean;
  signal?: AbortSignal;
}

const REQUEST_TIMEOUT_MS = 15_000;
const TOKEN_BYTES = 256 * 1024;

export type Ask = Pick<OutgoingRequest, 'method' | 'headers' | 'maxBytes' | 'timeoutMs'>;

/**
 * Sends requests to one registry, with the credentials that it asks for: none, a password, or a token of its token service, fetched
 * once for each scope.
 *
 * Where credentials go: to the registry's own origin and to the realm that this origin names. That realm may be another host
 * (`auth.docker.io` for Docker Hub, `gitlab.com` for its registry), as for every client of registries: a registry that wanted to take
 * the password elsewhere could just as well ask for it itself. But never to a realm without TLS of a registry with it, never along a
 * redirect, and never to a realm that another host than the registry names: a challenge is answered before redirects are followed.
 */
export class RegistrySender {
  readonly #session: Session;
  /** Authorization headers by scope; the empty scope is for a registry that wants a password. */
  readonly #authorizations = new Map<string, string>();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Whatever the registry answers in the end. `scope` is asked for where its challenge names none. */
  async send(path: string, ask: Ask, scope: string): Promise<OutgoingAnswer> {
    const url = new URL(path, this.#session.base);
    if (url.origin !== this.#session.base)
      throw new RegistryError('unexpected', `The registry ${this.#session.host} leads to another host: ${url.host}.`);
    const known = this.#authorizations.get(scope) ?? this.#authorizations.get('');
    const first = await request(this.#session, url.href, authorized(ask, known));
    const challenge = first.status === 401 ? parseChallenge(first.headers['www-authenticate']) : undefined;
    const fresh = challenge && (await this.#authorize(challenge, scope));
    const answer = fresh && fresh !== known ? await request(this.#session, url.href, authorized(ask, fresh)) : first;
    // Content often lies elsewhere, at an address that carries its own signature.
    return request(this.#session, url.href, ask, { authorization: fresh ?? known, first: answer });
  }

  /** Returns the header that answers a challenge; undefined without credentials for it. */
  async #authorize({ scheme, parameters }: Challenge, wanted: string): Promise<string | undefined> {
    const { credentials } = this.#session;
    const basic = credentials
      ? `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
      : undefined;
    if (scheme === 'basic') {
      if (basic) this.#authorizations.set('', basic);
      return basic;
    }
    const realm = realmOf(this.#session.base, parameters.get('realm'));
    if (!realm) return undefined;
    const scope = parameters.get('scope') || wanted;
    if (scope) realm.searchParams.set('scope', scope);
    const service = parameters.get('service');
    if (service) realm.searchParams.set('service', service);
    const token = await this.#fetchToken(realm, basic);
    if (token === undefined) return undefined;
    this.#authorizations.set(wanted, `Bearer ${token}`);
    return `Bearer ${token}`;
  }

  async #fetchToken(realm: URL, basic: string | undefined): Promise<string | undefined> {
    const headers: Record<string, string> = basic ? { authorization: basic } : {};
    const answer = await request(this.#session, realm.href, { headers, maxBytes: TOKEN_BYTES });
    if (answer.status === 429) throw limited(this.#session.host);
    if (answer.status >= 500)
      throw new RegistryError('unreachable', `The token service ${realm.host} answered ${answer.status}.`);
    return answer.status === 200 ? readToken(this.#session, answer) : undefined;
  }
}

/**
 * Sends one request to any host, without adding credentials; with `along`, follows the redirect in its first answer, too. Throws
 * RegistryError if there is no answer.
 */
export async function request(
  session: Session,
  url: string,
  ask: Ask,
  along?: { authorization: string | undefined; first: OutgoingAnswer },
): Promise<OutgoingAnswer> {
  const { http, host, signal, skipTlsVerification } = session;
  const outgoing = {
    timeoutMs: REQUEST_TIMEOUT_MS,
    ...ask,
    ...(skipTlsVerification ? { skipTlsVerification } : {}),
    ...(signal ? { signal } : {}),
  };
  try {
    return await (along
      ? requestFollowing(http, url, outgoing, along.authorization, along.first)
      : http.request(url, outgoing));
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    const given = error.failure === 'forbidden_address' || error.failure === 'invalid_url';
    const message = `The registry ${host} cannot be asked: ${error.message}`;
    throw new RegistryError(given ? 'refused_address' : 'unreachable', message, error);
  }
}

const authorized = (ask: Ask, authorization: string | undefined): Ask =>
  authorization ? { ...ask, headers: { ...ask.headers, authorization } } : ask;

/** Returns the URL of a token service, if it may have the credentials that the registry may have. */
function realmOf(base: string, realm: string | undefined): URL | undefined {
  if (!realm || !URL.canParse(realm)) return undefined;
  const url = new URL(realm);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  return base.startsWith('https:') && url.protocol !== 'https:' ? undefined : url;
}

/** Reads the token in an answer; undefined without one. No error quotes the answer, which may hold a token. */
async function readToken(session: Session, answer: OutgoingAnswer): Promise<string | undefined> {
  const shape: Shape = { token: 'text', access_token: 'text' };
  const body = await readAnswer(session, answer, { shape }).catch(unlessUnexpected);
  const token = body?.['token'] ?? body?.['access_token'];
  return typeof token === 'string' && /^[\x21-\x7e]+$/.test(token) ? token : undefined;
}

const unlessUnexpected = (error: unknown): undefined => {
  if (error instanceof RegistryError && error.failure === 'unexpected') return undefined;
  throw error;
};

/** Reads parts of the object in an answer; undefined if it is truncated or another value. Throws RegistryError for what cannot be read. */
export async function readAnswer(
  { organizationId, host }: Session,
  { body, truncated }: OutgoingAnswer,
  options: ShapeOptions,
): Promise<Record<string, unknown> | undefined> {
  if (truncated) return undefined;
  try {
    const file = { name: `The answer of ${host}`, text: body };
    return ((await readFileOf(organizationId, 'json-shape', file, options)) ?? undefined) as
      Record<string, unknown> | undefined;
  } catch (error) {
    if (!(error instanceof ParsingError)) throw error;
    if (error.kind === 'busy') throw new RegistryError('limited', `${error.message}.`, error);
    throw new RegistryError('unexpected', `${error.message}.`, error);
  }
}
