import { badGateway, badRequest, invalidField, type AppError } from '#kernel/errors.ts';

/** Reason why a registry refused or failed a request. */
export type RegistryFailure =
  /** Credentials are missing or wrong. */
  | 'unauthorized'
  /** No such image, tag or blob. */
  | 'not_found'
  /** No such function in this registry: a catalog. */
  | 'unsupported'
  /** Address that is invalid, or that may not be called. */
  | 'refused_address'
  /** No answer. */
  | 'unreachable'
  /** Too many requests: a later one may succeed. */
  | 'limited'
  /** Answer that does not follow the protocol. */
  | 'unexpected';

/** Failures that are in what the user gave; the others are the registry's. */
const OF_THE_USER = new Set<RegistryFailure>(['unauthorized', 'not_found', 'unsupported', 'refused_address']);
/** Failures that may be over when the same is asked later. */
const PASSING = new Set<RegistryFailure>(['unreachable', 'limited']);

/** Failure of a request to a registry. The message is fit for the user who named the registry, and has no credentials in it. */
export class RegistryError extends Error {
  readonly failure: RegistryFailure;

  constructor(failure: RegistryFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'RegistryError';
    this.failure = failure;
  }

  /** True if a later attempt may succeed. */
  get passing(): boolean {
    return PASSING.has(this.failure);
  }
}

/** Returns the error for a status of 429. */
export const limited = (host: string) =>
  new RegistryError('limited', `The registry ${host} wants fewer requests: try again later, or with credentials.`);

/**
 * Returns the error for the API: 400 if the user can mend it (naming the field, if there is one), else 502. Other errors pass unchanged.
 */
export function registryProblem(error: unknown, field?: string): AppError | unknown {
  if (!(error instanceof RegistryError)) return error;
  if (!OF_THE_USER.has(error.failure)) return badGateway(error.message, error);
  return field === undefined ? badRequest(error.message) : invalidField(field, error.message);
}
