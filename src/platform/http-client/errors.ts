/** Reason why a request got no answer. */
export type OutgoingFailure =
  /** URL that is invalid, not http or https, or would have credentials sent unencrypted. */
  | 'invalid_url'
  /** Private, loopback or similar address that the settings do not allow. */
  | 'forbidden_address'
  /** Name that does not resolve. */
  | 'unknown_host'
  | 'timeout'
  /** Certificate that this machine does not trust for that name. */
  | 'tls'
  /** Connection that is refused, reset or unreachable, or an answer that is not HTTP. */
  | 'connection';

/** Error of a request without an answer. The message is fit for the user who gave the URL. */
export class OutgoingError extends Error {
  readonly failure: OutgoingFailure;

  constructor(failure: OutgoingFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'OutgoingError';
    this.failure = failure;
  }
}

/** Returns the error for a failed request, from what the network stack threw. */
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
