import { AppError, badRequest, invalidField } from '#kernel/errors.ts';
import { LIMITS, type Shape } from '#kernel/parsing/formats.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import {
  OutgoingError,
  type HttpClient,
  type OutgoingAnswer,
  type OutgoingRequest,
} from '#platform/http-client/index.ts';

/** Git providers of the reference. */
export const GIT_PROVIDERS = ['BITBUCKET', 'GITHUB', 'GITLAB'] as const;
export type Provider = (typeof GIT_PROVIDERS)[number];

/** Address of a provider's API, and the token for it. */
export interface ProviderAccess {
  /** Organization of the token: answers are read in turn with the files of that organization. */
  organizationId: string;
  provider: Provider;
  /** Root of the API (`apiRoot`). The token goes to this origin and to no other. */
  api: string;
  token: string;
  signal: AbortSignal;
}

/** Answer of the API: 2xx with the requested parts of its JSON, or the 401, 403, 404 or other 4xx that the caller explains. */
export interface ProviderAnswer {
  status: number;
  headers: OutgoingAnswer['headers'];
  body: any;
}

/** Failure of a provider; the message is for the user. `refused`: another token or address is required. */
export class ProviderError extends Error {
  readonly reason: 'refused' | 'unreachable';
  /** Status of the provider's answer, where there is one and it says more. */
  readonly status: number | undefined;
  /** Seconds after which another request is worth it, if the provider says so. */
  readonly retryAfter: number | undefined;

  constructor(
    reason: ProviderError['reason'],
    message: string,
    extra: { cause?: unknown; status?: number; retryAfter?: number | undefined } = {},
  ) {
    super(message, { cause: extra.cause });
    this.name = 'ProviderError';
    this.reason = reason;
    this.status = extra.status;
    this.retryAfter = extra.retryAfter;
  }
}

/** Returns the error to answer: 400 for errors that the caller can mend, naming the field if there is one, else 502. */
export function toAppError(error: ProviderError, field?: string): AppError {
  if (error.reason === 'refused') return field ? invalidField(field, error.message) : badRequest(error.message);
  const headers = error.retryAfter === undefined ? undefined : { 'retry-after': String(error.retryAfter) };
  return new AppError('bad_gateway', error.message, { cause: error, ...(headers ? { headers } : {}) });
}

/** Returns the root of the API. Self-hosted GitLab and GitHub serve it under a path that is often left out. */
export function apiRoot(provider: Provider, address: string): string {
  const url = new URL(address);
  const bare = url.pathname === '/';
  if (provider === 'GITLAB' && bare) url.pathname = '/api/v4';
  if (provider === 'GITHUB' && bare && url.hostname !== 'api.github.com') url.pathname = '/api/v3';
  if (provider === 'BITBUCKET' && bare) url.pathname = '/2.0';
  return url.href.replace(/\/$/, '');
}

const HEADERS: Record<Provider, (token: string) => Record<string, string>> = {
  GITHUB: (token) => ({ authorization: `Bearer ${token}`, accept: 'application/vnd.github+json' }),
  GITLAB: (token) => ({ 'private-token': token }),
  BITBUCKET: (token) => ({ authorization: `Bearer ${token}` }),
};

/** A page of a hundred repositories with all that providers say of them takes less than 1 MiB. */
const MAX_BYTES = LIMITS['json-shape'].bytes;
/** Largest number of redirects: a renamed repository answers with its new address. */
const MAX_REDIRECTS = 3;
const MAX_WAIT_SECONDS = 24 * 3600;

/**
 * Asks the API of a provider for the parts of an answer that `shape` names. Throws ProviderError where there is no answer to explain:
 * unreachable, out of requests, broken, not JSON, or leading to another server.
 */
export async function askProvider(
  http: HttpClient,
  access: ProviderAccess,
  path: string,
  shape: Shape,
  request: OutgoingRequest = {},
): Promise<ProviderAnswer> {
  let url = `${access.api}${path}`;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const answer = await send(http, access, url, request);
    const moved = locationOf(access, url, answer);
    if (moved === undefined) return read(access, answer, shape);
    url = moved;
  }
  throw new ProviderError('unreachable', `${access.api} redirects for ever.`);
}

async function send(
  http: HttpClient,
  { provider, token, signal }: ProviderAccess,
  url: string,
  request: OutgoingRequest,
) {
  const headers = {
    'user-agent': 'quarterdeck',
    ...HEADERS[provider](token),
    ...(request.body ? { 'content-type': 'application/json' } : {}),
  };
  try {
    return await http.request(url, { maxBytes: MAX_BYTES, ...request, headers, signal });
  } catch (error) {
    if (signal.aborted)
      throw new ProviderError('unreachable', `${new URL(url).host} did not answer in time.`, { cause: error });
    if (!(error instanceof OutgoingError)) throw error;
    const reason = error.failure === 'forbidden_address' ? 'refused' : 'unreachable';
    throw new ProviderError(reason, error.message, { cause: error });
  }
}

/** Returns the address that a redirect leads to. Only to the same origin: the request carries the token. */
function locationOf({ api }: ProviderAccess, from: string, { status, headers }: OutgoingAnswer): string | undefined {
  if (![301, 302, 307, 308].includes(status)) return undefined;
  const location = String(headers.location ?? '');
  if (!URL.canParse(location, from)) throw new ProviderError('unreachable', `${api} redirects to nowhere.`);
  const url = new URL(location, from);
  if (url.origin === new URL(api).origin) return url.href;
  throw new ProviderError(
    'refused',
    `${api} redirects to ${url.origin}: name that address in git_api_url if it is right.`,
  );
}

/** Reads the answer in a thread, with limits: the address of a provider is its organization's, and may answer anything. */
async function read(
  { api, organizationId }: ProviderAccess,
  { status, headers, body, truncated }: OutgoingAnswer,
  shape: Shape,
): Promise<ProviderAnswer> {
  const spent = status === 403 && (headers['x-ratelimit-remaining'] === '0' || headers['retry-after'] !== undefined);
  if (status === 429 || spent) throw outOfRequests(api, headers);
  if (status >= 400 && status < 500) return { status, headers, body: undefined };
  if (status < 200 || status > 299 || truncated) throw new ProviderError('unreachable', `${api} answered ${status}.`);
  try {
    const file = { name: 'The answer', text: body };
    return { status, headers, body: await readFileOf(organizationId, 'json-shape', file, { shape }) };
  } catch (error) {
    if (!(error instanceof ParsingError) || error.kind === 'busy') throw error;
    throw new ProviderError('unreachable', `${api} did not answer with JSON that can be read: ${error.problem}.`, {
      cause: error,
    });
  }
}

function outOfRequests(api: string, headers: OutgoingAnswer['headers']): ProviderError {
  const retryAfter = waitOf(headers);
  const when = retryAfter === undefined ? 'later' : `in ${retryAfter} seconds`;
  const message = `${api} takes no more requests with this git token for now: try again ${when}.`;
  return new ProviderError('unreachable', message, { retryAfter });
}

/** Returns the seconds to wait. Providers give them as seconds, as a date, or as the Unix time at which the limit begins anew. */
function waitOf(headers: OutgoingAnswer['headers']): number | undefined {
  const text = (name: string) => (typeof headers[name] === 'string' ? headers[name] : '');
  const after = text('retry-after');
  const reset = text('x-ratelimit-reset') || text('ratelimit-reset');
  const seconds = /^\d+$/.test(after)
    ? Number(after)
    : after !== ''
      ? (Date.parse(after) - Date.now()) / 1000
      : reset === ''
        ? Number.NaN
        : Number(reset) - Date.now() / 1000;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(Math.ceil(seconds), 1), MAX_WAIT_SECONDS);
}
