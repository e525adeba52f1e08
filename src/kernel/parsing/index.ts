import { AppError } from '#kernel/errors.ts';
import { LIMITS, type Format, type Formats } from '#kernel/parsing/formats.ts';
import { ParserPool, Refusal, type RefusalKind } from '#kernel/parsing/pool.ts';

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
  if (Buffer.byteLength(text) > limits.bytes)
    throw new ParsingError(name, `it is larger than ${limits.bytes / 1024} KiB`, 'limit');
  try {
    return await pool.run(organizationId, { format, text, options: options ?? null }, limits);
  } catch (error) {
    if (error instanceof Refusal) throw new ParsingError(name, error.message, error.kind);
    throw error;
  }
}
