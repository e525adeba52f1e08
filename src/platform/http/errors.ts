import { STATUS_CODES } from '#kernel/node-http.ts';
import { isDatabaseAway } from '#platform/database/index.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import { AppError, type ErrorCode, type FieldError } from '#kernel/errors.ts';

/** Status codes by error code, in this place only. */
const STATUS: Record<ErrorCode, number> = {
  bad_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  bad_gateway: 502,
  unavailable: 503,
};

export interface ErrorAnswer {
  status: number;
  headers: Record<string, string>;
  body: { status: number; error: string; message: string; detail: string; errors?: FieldError[]; request_id?: string };
}

/** Returns the answer to an error (docs/contributing/rules.md 6). A 500 tells nothing of the inside, only the request id. */
export function answerTo(error: unknown, requestId: string): ErrorAnswer {
  const known = error instanceof AppError ? error : fromElsewhere(error);
  const status = known ? STATUS[known.code] : 500;
  const message =
    known && status !== 500 ? known.message : `Internal server error. Tell the operator this request id: ${requestId}`;
  return {
    status,
    headers: known?.headers ?? {},
    body: {
      status,
      error: STATUS_CODES[status] ?? 'Error',
      message,
      detail: message,
      ...(known?.errors ? { errors: known.errors } : {}),
      ...(status >= 500 ? { request_id: requestId } : {}),
    },
  };
}

/** SQLSTATE lock_not_available: the wait for another transaction's lock was in vain. */
const LOCKED = '55P03';

/** Makes the error of a database that is away for seconds: PostgreSQL restarts, or is taken over, and a retry mostly succeeds. */
const notNow = (message: string, cause: unknown): AppError =>
  new AppError('unavailable', message, { cause, headers: { 'Retry-After': '5' } });

const AWAY =
  'The database cannot be reached or lacks space or connections. Ask again in a few seconds; after a change, look first whether it was made.';
const TAKEN = 'What the request is about is being changed by others. Nothing was done: ask again in a few seconds.';

/** Errors that the HTTP library finds before a handler runs, and what the database could not do. */
function fromElsewhere(error: unknown): AppError | undefined {
  const { code } = error as { code?: string };
  if (code === READ_ONLY_CODE) return new AppError('unavailable', (error as Error).message);
  if (isDatabaseAway(error)) return notNow(AWAY, error);
  if (code === LOCKED) return notNow(TAKEN, error);
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new AppError('too_large', 'The body is larger than 1 MiB.');
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH')
    return new AppError('bad_request', 'Content-Length is not the length of the body.');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new AppError('unsupported_media_type', 'Send the body as `Content-Type: application/json`.');
  if ((error as { statusCode?: number }).statusCode === 400)
    return new AppError('bad_request', 'The request is malformed.', { cause: error });
  return undefined;
}
