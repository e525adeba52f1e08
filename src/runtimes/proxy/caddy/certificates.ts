import { X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { certificateLog, storageFolder } from '#runtimes/proxy/caddy/config.ts';
import type { CertificateStatus } from '#runtimes/router.ts';

/** Last event that Caddy logged about the certificate of a host. */
interface LastEvent {
  at: number;
  /** Null if the certificate was obtained. */
  error: string | null;
  /** True if the error is the authority's answer to a challenge of the present attempt. */
  isChallenge?: boolean;
}

/** Maximum length of a reason. */
const REASON_CHARACTERS = 500;

/** Reads the state of certificates from Caddy's storage and its log. */
export class CertificateReader {
  readonly #directory: string;
  /** Folder of the authority's certificates in the storage. */
  readonly #issuer: string;
  readonly #log: (line: string) => void;
  /** Events of the log at the last read, with the sizes and times of its files. */
  #known: { state: string; events: Map<string, LastEvent> } = { state: '', events: new Map() };
  /** Unreadable lines that were reported. */
  #torn = new Set<string>();

  constructor(directory: string, directoryUrl: string, log: (line: string) => void) {
    this.#directory = directory;
    this.#issuer = issuerFolder(directoryUrl);
    this.#log = log;
  }

  /**
   * Returns the state of the certificates of hosts. `since`: the time at which each host began to ask for one (milliseconds since 1970), as
   * earlier failures concern a previous use of the host; null while it does not ask.
   */
  async read(since: ReadonlyMap<string, number | null>): Promise<CertificateStatus[]> {
    const events = await this.#readEvents();
    const all: CertificateStatus[] = [];
    for (const [host, asked] of since) {
      const expiresAt = await this.#expiryOf(host);
      const event = events.get(host);
      const lastError = event && asked !== null && event.at >= asked ? event.error : null;
      const isValid = expiresAt !== null && expiresAt > Date.now();
      const state = isValid ? 'ISSUED' : lastError === null ? 'PENDING' : 'FAILED';
      all.push({ host, state, expiresAt, lastError });
    }
    return all;
  }

  /** Returns the expiry of the certificate that the present authority issued for a host; null without one, and while Caddy writes it. */
  async #expiryOf(host: string): Promise<number | null> {
    const file = join(storageFolder(this.#directory), 'certificates', this.#issuer, host, `${host}.crt`);
    try {
      return new X509Certificate(await readFile(file)).validToDate.getTime();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code?.startsWith('ERR_OSSL')) return null;
      throw error;
    }
  }

  /** Reads the log and the one before it, oldest first, if they have changed. Both have 1 MB at most. */
  async #readEvents(): Promise<Map<string, LastEvent>> {
    const older = (await readdir(this.#directory))
      .filter((name) => name.startsWith('certificates-') && name.endsWith('.log'))
      .sort()
      .map((name) => join(this.#directory, name));
    const files = [...older, certificateLog(this.#directory)];
    const state = JSON.stringify(await Promise.all(files.map(stateOf)));
    if (state === this.#known.state) return this.#known.events;
    const events = new Map<string, LastEvent>();
    const torn: string[] = [];
    for (const file of files) {
      const lines = (await readFile(file, 'utf8').catch(nothing)).split('\n');
      // Text after the last line break is still being written.
      for (const line of lines.slice(0, -1)) if (!note(line, events)) torn.push(line);
    }
    this.#tell(torn);
    this.#known = { state, events };
    return events;
  }

  /** Reports each unreadable line once. */
  #tell(torn: readonly string[]): void {
    for (const line of torn.filter((one) => !this.#torn.has(one)))
      this.#log(`A line of ${certificateLog(this.#directory)} cannot be read: ${line.slice(0, REASON_CHARACTERS)}`);
    this.#torn = new Set(torn);
  }
}

/** Returns a value that changes with every change of a file. */
async function stateOf(file: string): Promise<unknown> {
  const found = await stat(file).catch(nothing);
  return found === '' ? null : [file, found.ino, found.size, found.mtimeMs];
}

/** Returns the empty text for a file that is missing: Caddy rotates its log. */
function nothing(error: NodeJS.ErrnoException): '' {
  if (error.code === 'ENOENT') return '';
  throw error;
}

/** Returns the folder in which Caddy stores an authority's certificates: host and path of its directory, `acme.example.com-dir`. */
export function issuerFolder(directoryUrl: string): string {
  if (!URL.canParse(directoryUrl)) return directoryUrl;
  const { host, pathname } = new URL(directoryUrl);
  const path = pathname.replaceAll(/[/\\]/g, '-').replaceAll(/^-+|-+$/g, '');
  return [host, path]
    .filter(Boolean)
    .join('-')
    .toLowerCase()
    .replaceAll('+', '_plus_')
    .replaceAll(':', '-')
    .replaceAll('..', '')
    .replaceAll(/[^\w@.-]/g, '');
}

interface Logged {
  ts: number;
  level: string;
  msg: string;
  identifier?: string;
  error?: unknown;
  challenge_type?: string;
}

/**
 * Records a line of the log: the end of an attempt, with the authority's answer to a challenge rather than its consequences. Returns false
 * if the line cannot be read, as a full disk or a crash may leave it.
 */
function note(line: string, events: Map<string, LastEvent>): boolean {
  const logged = line === '' ? {} : parse(line);
  if (!logged) return false;
  noteEvent(logged, events);
  return true;
}

function parse(line: string): Partial<Logged> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function noteEvent(
  { ts, level, msg = '', identifier, error, challenge_type: challenge }: Partial<Logged>,
  events: Map<string, LastEvent>,
): void {
  if (identifier === undefined || ts === undefined) return;
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

/** Returns whether an attempt ended because another configuration was loaded, under which it begins again. */
const isInterruption = (error: unknown): boolean => String(error).includes('context canceled');

/** Returns the authority's own words without Caddy's wrapping: `[shop.example.com] Obtain: [shop.example.com] solving challenge: …`. */
function reasonOf(error: string): string {
  const bare = error
    .replaceAll(/\[[^\]\s]+\] /g, '')
    .replace(/^(Obtain|Renew): /, '')
    .replace(/ \(order=[^)]*\)/, '');
  return bare.slice(0, REASON_CHARACTERS);
}
