import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificateLog, storageFolder } from '#runtimes/proxy/caddy/config.ts';
import type { CertificateStatus } from '#runtimes/router.ts';

/** Last thing that Caddy said of the certificate of a host. */
interface LastEvent {
  at: number;
  /** Null if the certificate was obtained. */
  error: string | null;
  /** Whether the error is what the authority said of a challenge of the present attempt. */
  isChallenge?: boolean;
}

/** Longest reason that is kept. */
const REASON_CHARACTERS = 500;

/**
 * State of the certificates of hosts, from Caddy's storage and its log. `since`: when each host began to ask for one
 * (milliseconds since 1970), as failures from before concern a host that was here earlier.
 */
export function readCertificates(directory: string, since: ReadonlyMap<string, number>): CertificateStatus[] {
  const events = readEvents(directory);
  return [...since].map(([host, asked]) => {
    const expiresAt = findExpiry(directory, host);
    const event = events.get(host);
    const lastError = event && event.at >= asked ? event.error : null;
    const isValid = expiresAt !== null && expiresAt > Date.now();
    return { host, state: isValid ? 'ISSUED' : lastError === null ? 'PENDING' : 'FAILED', expiresAt, lastError };
  });
}

/** End of validity of the newest certificate that is stored for a host; authorities have folders of their own. */
function findExpiry(directory: string, host: string): number | null {
  const all = join(storageFolder(directory), 'certificates');
  if (!existsSync(all)) return null;
  const ends = readdirSync(all).flatMap((issuer) => {
    const file = join(all, issuer, host, `${host}.crt`);
    return existsSync(file) ? (expiryOf(file) ?? []) : [];
  });
  return ends.length > 0 ? Math.max(...ends) : null;
}

/** Null while Caddy writes the file. */
function expiryOf(file: string): number | null {
  try {
    return new X509Certificate(readFileSync(file)).validToDate.getTime();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.startsWith('ERR_OSSL')) return null;
    throw error;
  }
}

/** Reads the log and the one before it, oldest first. Both have 1 MB at most. */
function readEvents(directory: string): Map<string, LastEvent> {
  const events = new Map<string, LastEvent>();
  const current = certificateLog(directory);
  const older = readdirSync(directory)
    .filter((name) => name.startsWith('certificates-') && name.endsWith('.log'))
    .sort()
    .map((name) => join(directory, name));
  for (const file of [...older, current]) {
    if (!existsSync(file)) continue;
    for (const line of readFileSync(file, 'utf8').split('\n')) note(line, events);
  }
  return events;
}

interface Logged {
  ts: number;
  level: string;
  msg: string;
  identifier?: string;
  error?: unknown;
  challenge_type?: string;
}

/** Notes a line of the log: the end of an attempt, with the words of the authority on a challenge rather than what follows from them. */
function note(line: string, events: Map<string, LastEvent>): void {
  if (!line.startsWith('{') || !line.endsWith('}')) return;
  const { ts, level, msg, identifier, error, challenge_type: challenge } = JSON.parse(line) as Logged;
  if (identifier === undefined) return;
  const at = ts * 1000;
  const last = events.get(identifier);
  if (/certificate (obtained|renewed) successfully/.test(msg)) events.set(identifier, { at, error: null });
  else if (/^(obtaining|renewing) certificate$/.test(msg)) {
    if (last?.isChallenge) events.set(identifier, { ...last, isChallenge: false });
  } else if (level === 'error' && error !== undefined && !isInterruption(error)) {
    const said = reasonOf(String(error));
    if (challenge !== undefined) events.set(identifier, { at, error: `${challenge}: ${said}`, isChallenge: true });
    else if (last?.isChallenge) events.set(identifier, { ...last, at });
    else events.set(identifier, { at, error: said });
  }
}

/** Whether an attempt ended because another configuration was loaded, under which it begins anew. */
const isInterruption = (error: unknown): boolean => String(error).includes('context canceled');

/** The authority's own words without Caddy's wrapping: `[shop.example.com] Obtain: [shop.example.com] solving challenge: …`. */
function reasonOf(error: string): string {
  const bare = error
    .replaceAll(/\[[^\]\s]+\] /g, '')
    .replace(/^(Obtain|Renew): /, '')
    .replace(/ \(order=[^)]*\)/, '');
  return bare.slice(0, REASON_CHARACTERS);
}
