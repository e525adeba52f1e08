/** Reason why a request got no answer. */
export type OutgoingFailure =
  /** The URL is none, not http or https, or would have credentials sent unencrypted. */
  | 'invalid_url'
  /** The address is private, loopback or the like, and the settings do not allow it. */
  | 'forbidden_address'
  /** The name does not resolve. */
  | 'unknown_host'
  | 'timeout'
  /** The certificate is not one that this machine trusts for that name. */
  | 'tls'
  /** Refused, reset, unreachable, not HTTP. */
  | 'connection';

/** A request without an answer. The message is fit for the user who gave the URL. */
export class OutgoingError extends Error {
  readonly failure: OutgoingFailure;

  constructor(failure: OutgoingFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'OutgoingError';
    this.failure = failure;
  }
}

/** Says in which way a request failed, from what the network stack threw. */
export function outgoingError(error: unknown, host: string): OutgoingError {
  const known = causes(error).find((cause) => cause instanceof OutgoingError);
  if (known) return known;
  const codes = causes(error).map((cause) => String((cause as { code?: unknown }).code ?? ''));
  const text = (error as Error).message || codes.find((code) => code !== '') || 'it failed';
  if (codes.some((code) => code === 'ENOTFOUND' || code === 'EAI_AGAIN'))
    return new OutgoingError('unknown_host', `The name ${host} does not resolve.`, error);
  if (codes.some((code) => /^(ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_SSL_)/.test(code)))
    return new OutgoingError('tls', `The certificate of ${host} is not trusted: ${text}.`, error);
  return new OutgoingError('connection', `${host} could not be reached: ${text}.`, error);
}

function causes(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const inner = error instanceof AggregateError ? error.errors.flatMap(causes) : [];
  return [error, ...inner, ...causes(error.cause)];
}
