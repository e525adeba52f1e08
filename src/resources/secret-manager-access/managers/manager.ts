import type { Clock } from '#kernel/clock.ts';
import type { Shape } from '#kernel/parsing/formats.ts';
import { ParsingError, readFileOf } from '#kernel/parsing/index.ts';
import { OutgoingError, type HttpClient, type OutgoingRequest } from '#platform/http-client/index.ts';
import type { Settings } from '#platform/settings/index.ts';

/** External system that keeps secrets. Every method throws SecretManagerError. */
export interface SecretManager {
  /** Name in messages: `AWS Secrets Manager in eu-west-3`. */
  readonly label: string;
  /** Lists names of the secrets that begin with the prefix, at most MAX_NAMES. */
  list(prefix: string): Promise<string[]>;
  /** Reads the newest value of a secret. */
  read(name: string): Promise<string>;
}

/** Parts of the program that calling a manager needs. */
export interface ManagerParts {
  http: HttpClient;
  settings: Settings;
  clock: Clock;
  signal: AbortSignal;
  /** Organization of the access: roles of AWS are assumed with it as the external id. */
  organizationId: string;
}

/** Failure of a manager to give a secret; the message is for the user and contains no secret. */
export class SecretManagerError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SecretManagerError';
  }
}

/** Largest number of names in a list: a prefix narrows longer ones. */
export const MAX_NAMES = 2000;
const MAX_PAGES = 100;
/** The largest secrets are of 1 MiB (Vault), and come encoded. */
const MAX_BYTES = 4 * 1024 * 1024;

export interface ManagerAnswer {
  status: number;
  /** Parts of the JSON that the shape names; undefined where it is not JSON. */
  body: any;
  bytes: Buffer;
}

/** Asks a manager and reads the parts of its answer that the shape names. Throws where there is no answer, or one that only repeats later. */
export async function ask(
  parts: ManagerParts,
  url: string,
  request: OutgoingRequest,
  shape: Shape | null,
): Promise<ManagerAnswer> {
  try {
    const answer = await parts.http.request(url, { maxBytes: MAX_BYTES, ...request, signal: parts.signal });
    if (answer.truncated) throw new SecretManagerError('it answered more than 4 MiB');
    if (answer.status === 429) throw new SecretManagerError('it takes no more requests for now: try again later');
    const body = shape && (await readBody(parts, answer.body, shape));
    return { status: answer.status, body, bytes: answer.body };
  } catch (error) {
    if (parts.signal.aborted) throw new SecretManagerError('it did not answer in time', error);
    if (error instanceof OutgoingError) throw new SecretManagerError(withoutStop(error.message), error);
    throw error;
  }
}

/** Reads the parts of an answer. The problem of one that is not JSON is not repeated: it quotes the answer, which may hold secrets. */
async function readBody({ organizationId }: ManagerParts, text: Buffer, shape: Shape): Promise<unknown> {
  try {
    return await readFileOf(organizationId, 'json-shape', { name: 'The answer', text }, { shape });
  } catch (error) {
    if (!(error instanceof ParsingError)) throw error;
    if (error.kind === 'fault') return undefined;
    throw new SecretManagerError(`its answer cannot be read: ${error.problem}`, error);
  }
}

const withoutStop = (message: string): string => message.replace(/\.$/, '');

/** Page of names, and the cursor of the next one. */
export interface NamePage<Next> {
  names: string[];
  next: Next | undefined;
}

/** Follows pages to their end, or to MAX_NAMES. */
export async function allNames<Next>(
  prefix: string,
  page: (next: Next | undefined) => Promise<NamePage<Next>>,
): Promise<string[]> {
  const found: string[] = [];
  let next: Next | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const answer = await page(next);
    found.push(...answer.names.filter((name) => name.startsWith(prefix)));
    next = answer.next;
    if (next === undefined || next === '' || found.length >= MAX_NAMES) break;
  }
  return found.slice(0, MAX_NAMES).sort();
}

/** Decodes a text from base64. Throws for bytes that are no text: neither a variable nor an interpolated file can hold them. */
export function decoded(base64: unknown): string {
  if (typeof base64 !== 'string') throw notUnderstood();
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'));
  } catch (error) {
    if (error instanceof TypeError) throw new SecretManagerError('its value is no text in UTF-8', error);
    throw error;
  }
}

export const notThere = (): SecretManagerError => new SecretManagerError('it has no secret of that name');
export const notLetIn = (): SecretManagerError =>
  new SecretManagerError('it does not accept the credentials of the access');
export const notAllowed = (what = 'this'): SecretManagerError =>
  new SecretManagerError(`it does not allow the access ${what}`);
export const notUnderstood = (): SecretManagerError =>
  new SecretManagerError('it answered something that is not understood');

/** Returns a required text of an answer. */
export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw notUnderstood();
  return value;
}

/** Returns a list of an answer; a missing list is empty. */
export function listOf(value: unknown): any[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw notUnderstood();
  return value;
}
