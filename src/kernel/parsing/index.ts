import { AppError } from '#kernel/errors.ts';
import { LIMITS, type Format, type Formats, type ShapeOptions } from '#kernel/parsing/formats.ts';
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

/** Threads of this process. The first file starts one; they end with the process. */
const pool = new ParserPool();

type OptionsOf<F extends Format> = Formats[F]['options'] extends null ? [] : [options: Formats[F]['options']];

/**
 * Reads a file of an organization in a thread, with limits of size, time and memory: other requests go on meanwhile. Throws ParsingError
 * that names the file and its fault.
 */
export async function readFileOf<F extends Format>(
  organizationId: string,
  format: F,
  { name, text }: UserFile | EncodedFile,
  ...[options]: OptionsOf<F>
): Promise<Formats[F]['result']> {
  const limits = LIMITS[format];
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.bytes) throw new ParsingError(name, `it is larger than ${limits.bytes / 1024} KiB`, 'limit');
  if (format === 'json-shape' && bytes <= SMALL_BYTES) return readSmall(name, text, options as ShapeOptions);
  try {
    return await pool.run(organizationId, { format, text, options: options ?? null }, limits);
  } catch (error) {
    if (error instanceof Refusal) throw new ParsingError(name, error.message, error.kind);
    throw error;
  }
}

function readSmall(name: string, text: string | Uint8Array, options: ShapeOptions): unknown {
  try {
    return parseShape(decodeText(text), options);
  } catch (error) {
    const { problem, kind } = problemOf(error);
    throw new ParsingError(name, problem, kind);
  }
}
