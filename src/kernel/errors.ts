/** Kind of an error, independent of the transport: only `platform/http/errors.ts` knows status codes. */
export type ErrorCode =
  | 'bad_request'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'precondition_failed'
  | 'too_large'
  | 'unsupported_media_type'
  | 'rate_limited'
  | 'bad_gateway'
  | 'unavailable'
  | 'internal';

/** Invalid field: `field` is its path in the body, query or path (`ports[0].internal_port`). */
export interface FieldError {
  field: string;
  message: string;
}

/**
 * The one error type of the program. `message` is public: it says what is wrong and what would be right.
 * `detail` and `cause` are for the log only.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly errors: FieldError[] | undefined;
  readonly detail: unknown;
  /** Extra response headers, such as `Retry-After`. */
  readonly headers: Record<string, string> | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    extra: { errors?: FieldError[]; detail?: unknown; cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(message, { cause: extra.cause });
    this.name = 'AppError';
    this.code = code;
    this.errors = extra.errors;
    this.detail = extra.detail;
    this.headers = extra.headers;
  }
}

/** 400: the request is wrong as a whole. */
export const badRequest = (message: string, errors?: FieldError[]) => new AppError('bad_request', message, { errors });

/** 400 that names one field: the message is answered both as a whole and under `errors`. */
export const invalidField = (field: string, message: string) =>
  new AppError('bad_request', `${field}: ${message}`, { errors: [{ field, message }] });

/** 401 */
export const unauthenticated = (
  message = 'The token is missing or invalid: send `Authorization: Token <API token>`.',
) => new AppError('unauthenticated', message);

/** 403 */
export const forbidden = (message: string) => new AppError('forbidden', message);

/** 404. Alike for what isn't there and for what belongs to another organization (docs/contributing/rules.md 7). */
export const notFound = (what: string) => new AppError('not_found', `${what} not found.`);

/** 405: the path is there for other methods. */
export const methodNotAllowed = (method: string, allowed: string[]) =>
  new AppError('method_not_allowed', `${method} is not allowed here: this path takes ${allowed.join(', ')}.`, {
    headers: { Allow: allowed.join(', ') },
  });

/** 409 */
export const conflict = (message: string) => new AppError('conflict', message);

/** 412: `If-Match` names another version than the present one. */
export const preconditionFailed = (message: string) => new AppError('precondition_failed', message);

/** 502: a system that we asked for the answer did not give it. */
export const badGateway = (message: string, cause?: unknown) => new AppError('bad_gateway', message, { cause });

/** 500: a state that the program excludes. */
export const internal = (detail: string, cause?: unknown) =>
  new AppError('internal', 'Internal server error.', { detail, cause });
