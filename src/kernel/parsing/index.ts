import { AppError } from '#kernel/errors.ts';
import {
  LIMITS,
  type ArchiveContent,
  type ArchiveOptions,
  type Format,
  type Formats,
  type Question,
  type Shape,
  type Shaped,
} from '#kernel/parsing/formats.ts';
import { inspectChartObject } from '#kernel/parsing/chart-object.ts';
import { parseShape } from '#kernel/parsing/json.ts';
import { ParserPool, Refusal, type RefusalKind } from '#kernel/parsing/pool.ts';
import { decodeText, problemOf } from '#kernel/parsing/problem.ts';

/** File of a user, with the name for messages. */
export interface UserFile {
  name: string;
  text: string;
}

/** File of a user that was not decoded yet. */
interface EncodedFile {
  name: string;
  /** Text in UTF-8. */
  text: Uint8Array;
}

/** Error of a file of a user: 400, or 503 where too many files of its owner wait. */
export class ParsingError extends AppError {
  /** Message without the file's name. */
  readonly problem: string;
  readonly kind: RefusalKind;

  constructor(file: string, problem: string, kind: RefusalKind) {
    const [code, extra] =
      kind === 'busy'
        ? (['unavailable', { headers: { 'Retry-After': '5' } }] as const)
        : (['bad_request', {}] as const);
    super(code, `${file}: ${problem}`, extra);
    this.name = 'ParsingError';
    this.problem = problem;
    this.kind = kind;
  }
}

/** JSON up to this size is read at once: that takes 3 ms at most, and a thread takes 100 ms and 50 MB to start. */
const SMALL_BYTES = 16 * 1024;
const SMALL: Partial<Record<Format, (text: string, options: never) => unknown>> = {
  'json-shape': parseShape,
  'chart-object': inspectChartObject,
};

/** Threads of this process. The first file starts one; they end with the process. */
const pool = new ParserPool();

/** Threads for archives, which may take a minute each: other files never wait for them. */
const MOST_ARCHIVES = 2;
const archivePool = new ParserPool(undefined, MOST_ARCHIVES);

/** Thread for passkeys: people who sign in never wait for files. */
const passkeyPool = new ParserPool(undefined, 1);

type PasskeyFormat = 'passkey-registration' | 'passkey-assertion';
type OptionsOf<F extends Format> = Formats[F]['options'] extends null ? [] : [options: Formats[F]['options']];

/**
 * Reads a file of an organization in a thread, with limits of size, time and memory: other requests go on meanwhile. Throws ParsingError
 * that names the file and its fault.
 */
export async function readFileOf<F extends Exclude<Format, 'source-archive' | PasskeyFormat>>(
  organizationId: string,
  format: F,
  { name, text }: UserFile | EncodedFile,
  ...[options]: OptionsOf<F>
): Promise<Formats[F]['result']> {
  const limits = LIMITS[format];
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.bytes) throw new ParsingError(name, `it is larger than ${limits.bytes / 1024} KiB`, 'limit');
  const parseSmall = bytes <= SMALL_BYTES ? SMALL[format] : undefined;
  if (parseSmall) return readSmall(name, () => parseSmall(decodeText(text), options as never)) as Formats[F]['result'];
  return readIn(pool, organizationId, name, { format, text, options: options ?? null });
}

/** Reads the parts of a text of JSON that a shape names; null for a text without any of them. Throws ParsingError. */
export const readShapeOf = async <const S extends Shape>(
  organizationId: string,
  file: UserFile | EncodedFile,
  shape: S,
  refusesAmbiguousKeys = false,
): Promise<Shaped<S> | null> =>
  (await readFileOf(organizationId, 'json-shape', file, { shape, refusesAmbiguousKeys })) as Shaped<S> | null;

/**
 * Converts an uploaded archive in a thread with limits of time and memory; the abort of the signal ends it. `archive` is the path of its file.
 * Throws ParsingError that names the entry and its fault, or the reason of the abort.
 */
export const readArchiveOf = (
  organizationId: string,
  archive: string,
  options: ArchiveOptions,
  signal: AbortSignal,
): Promise<ArchiveContent> =>
  readIn(archivePool, organizationId, 'archive', { format: 'source-archive', text: archive, options }, signal);

/**
 * Checks the answer of a browser about a passkey in a thread with limits of time and memory: it comes from people who are not signed in. Throws
 * ParsingError with what is wrong.
 */
export async function checkPasskey<F extends PasskeyFormat>(
  format: F,
  credential: object,
  options: Formats[F]['options'],
): Promise<Formats[F]['result']> {
  const text = JSON.stringify(credential);
  if (text.length > LIMITS[format].bytes)
    throw new ParsingError('credential', `it is larger than ${LIMITS[format].bytes / 1024} KiB`, 'limit');
  return readIn(passkeyPool, 'people who sign in', 'credential', { format, text, options });
}

async function readIn<T>(
  threads: ParserPool,
  organizationId: string,
  name: string,
  question: Question,
  signal?: AbortSignal,
): Promise<T> {
  try {
    return await threads.run<T>(organizationId, question, LIMITS[question.format], signal);
  } catch (error) {
    if (error instanceof Refusal) throw new ParsingError(name, error.message, error.kind);
    throw error;
  }
}

function readSmall(name: string, parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    const { problem, kind } = problemOf(error);
    throw new ParsingError(name, problem, kind);
  }
}
