import { createRemoteJWKSet, customFetch, decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JWTPayload, JWTVerifyGetKey } from 'jose';
import { AppError } from '#kernel/errors.ts';
import type { SessionVerifier } from '#platform/access/authenticate.ts';
import { findSessionPrincipal, type Person } from '#platform/access/people.ts';
import type { Platform } from '#platform/context.ts';
import { SettingsError } from '#platform/settings/index.ts';

/** Algorithms of tokens. Never `none`, never a symmetric one: the key that verifies is public (docs/contributing/rules.md 25). */
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];
const LEEWAY_SECONDS = 60;
const TIMEOUT_MS = 5_000;
/** Limit of a document: those of providers with many keys have some 30 KiB. */
const MAX_BYTES = 256 * 1024;
/** Milliseconds between a failed discovery and the next attempt, so that a dead provider isn't asked with every request. */
const RETRY_AFTER_MS = 5_000;

interface Provider {
  issuer: string;
  keys: JWTVerifyGetKey;
}

/** Groups of a person, as a token of the identity provider names them. */
export interface ReadGroups {
  userId: string;
  groups: string[];
  /** Time at which the provider made the token. */
  tokenAt: Date;
}

/** Called with the groups of each verified token; returns whether the person's rights may have changed. */
export type OnSignIn = (signIn: ReadGroups) => Promise<boolean>;

/**
 * Verifies sessions by the identity provider of the settings: its keys are found by discovery and kept; a key that is new there
 * is fetched when a token names it. Null when the settings name no provider: only API tokens are accepted then.
 * Throws SettingsError without an audience: tokens that the provider made for other programs would be accepted.
 */
export function createSessionVerifier(platform: Platform, onSignIn?: OnSignIn): SessionVerifier | null {
  const { oidcIssuer, oidcAudience } = platform.settings;
  if (!oidcIssuer) return null;
  if (!oidcAudience)
    throw new SettingsError(['QUARTERDECK_OIDC_AUDIENCE is required with QUARTERDECK_OIDC_ISSUER: name this service.']);
  const provider = discoverOnce(platform, oidcIssuer);
  return {
    find: async (token) => {
      if (!mayBeOurs(token, oidcIssuer)) return undefined;
      const claims = await verify(token, await provider(), oidcAudience, platform.clock.now());
      if (!claims) return undefined;
      const person = personOf(claims);
      const principal = await findSessionPrincipal(platform, person);
      const read = groupsOf(claims, platform.settings.oidcGroupsClaim);
      const isChanged = read && (await onSignIn?.({ userId: principal.userId, ...read }));
      return isChanged ? findSessionPrincipal(platform, person) : principal;
    },
  };
}

/** Reads the claims without verifying them, so that a foreign token causes no call of the provider. */
function mayBeOurs(token: string, issuer: string): boolean {
  try {
    const { alg } = decodeProtectedHeader(token);
    return ALGORITHMS.includes(alg ?? '') && sameIssuer(decodeJwt(token).iss, issuer);
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError) return false; // Not a JWT at all.
    throw error;
  }
}

async function verify(
  token: string,
  { issuer, keys }: Provider,
  audience: string,
  now: Date,
): Promise<JWTPayload | undefined> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      issuer,
      audience,
      clockTolerance: LEEWAY_SECONDS,
      currentDate: now,
      requiredClaims: ['sub', 'exp'],
    });
    return payload.sub ? payload : undefined;
  } catch (error) {
    if (isUnreachable(error)) throw unreachable(error);
    if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Errors that say nothing of the token: the provider did not hand over its keys. */
const isUnreachable = (error: unknown): boolean =>
  error instanceof errors.JWKSTimeout ||
  error instanceof errors.JWKSInvalid ||
  (error as Error)?.constructor === errors.JOSEError ||
  error instanceof ProviderError;

class ProviderError extends Error {}

const unreachable = (cause: unknown) =>
  new AppError(
    'unavailable',
    'The identity provider cannot be reached at the moment: try again, or use an API token.',
    {
      cause,
      headers: { 'Retry-After': String(RETRY_AFTER_MS / 1000) },
    },
  );

/** Returns a function that finds the provider by its discovery document: asked for once, and again after a failure. */
function discoverOnce(platform: Platform, issuer: string): () => Promise<Provider> {
  let found: Promise<Provider> | undefined;
  let failedAt = -Infinity;
  let failure: unknown;
  return async () => {
    if (!found && Date.now() - failedAt < RETRY_AFTER_MS) throw unreachable(failure);
    found ??= discover(issuer);
    try {
      return await found;
    } catch (error) {
      found = undefined;
      failure = error;
      failedAt = Date.now();
      platform.log.warn({ err: error, issuer }, 'the identity provider cannot be reached');
      throw unreachable(error);
    }
  };
}

/** OpenID Connect Discovery 1.0 §4: the document's issuer must be the one that was asked. */
async function discover(issuer: string): Promise<Provider> {
  const response = await fetchFrom(`${issuer}/.well-known/openid-configuration`, {});
  const document = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
  if (typeof document.issuer !== 'string' || !sameIssuer(document.issuer, issuer))
    throw new ProviderError(`${issuer} says that it is ${String(document.issuer)}.`);
  if (typeof document.jwks_uri !== 'string' || !URL.canParse(document.jwks_uri))
    throw new ProviderError(`${issuer} names no address of its keys.`);
  const address = new URL(document.jwks_uri);
  if (address.protocol !== 'https:' && address.origin !== new URL(issuer).origin)
    throw new ProviderError(`${issuer} names an address of its keys that is not https.`);
  const keys = createRemoteJWKSet(address, { timeoutDuration: TIMEOUT_MS, [customFetch]: fetchFrom });
  return { issuer: document.issuer, keys };
}

/** Fetches a document of at most `MAX_BYTES`. Redirects are not followed: keys come from where the provider says they are. */
async function fetchFrom(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), ...init, redirect: 'error' });
    if (!response.ok) throw new ProviderError(`${url} answered ${response.status}.`);
    return new Response(await readBounded(url, response));
  } catch (cause) {
    throw cause instanceof ProviderError ? cause : new ProviderError(`${url} did not answer.`, { cause });
  }
}

async function readBounded(url: string, { body }: Response): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new ProviderError(`${url} answered more than ${MAX_BYTES / 1024} KiB.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns whether two issuers are the same. Some providers write a slash at the end of their name; the settings leave it out. */
const sameIssuer = (said: string | undefined, wanted: string): boolean => said?.replace(/\/$/, '') === wanted;

/**
 * Returns the groups of a token; undefined where they are not read, or where the provider has left them out because there are too many
 * (`_claim_names`, OpenID Connect Core 1.0 §5.6.2): then they are not known. A claim that is absent otherwise means no group.
 */
function groupsOf(claims: JWTPayload, claim: string): Pick<ReadGroups, 'groups' | 'tokenAt'> | undefined {
  const elsewhere = claims._claim_names as Record<string, unknown> | undefined;
  if (claim === '' || claims.iat === undefined || elsewhere?.[claim] !== undefined) return undefined;
  const value = claims[claim] ?? nested(claims, claim.split('.'));
  const groups = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string' && one !== '');
  return { groups: groups as string[], tokenAt: new Date(claims.iat * 1000) };
}

/** Returns a claim within claims, such as `realm_access.roles` of Keycloak. */
const nested = (claims: unknown, path: string[]): unknown =>
  path.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as never)[name] : undefined),
    claims,
  );

const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 500) : '');

function personOf(claims: JWTPayload): Person {
  const verified = claims.email_verified === true;
  return {
    subject: `${claims.iss}|${claims.sub}`,
    // An address that the provider has not verified could be anybody's (docs/contributing/rules.md 25).
    email: verified && text(claims.email) ? text(claims.email) : null,
    emailUnverified: !verified && (text(claims.email) !== '' || claims.email_verified !== undefined),
    firstName: text(claims.given_name),
    lastName: text(claims.family_name),
    nickname: text(claims.nickname) || text(claims.preferred_username) || text(claims.name),
    pictureUrl: text(claims.picture),
  };
}
