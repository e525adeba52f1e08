/** Forms of the causes of failures. */
import type { ErrorCode } from '#deployments/model/errors.ts';

/** Cause that failures are searched for. */
export interface KnownCause {
  /** Sentence that says what happened. */
  summary: string;
  /** Sentence that says what usually fixes it. */
  fix: string;
  /** Codes of the failures that may have it. */
  of: readonly ErrorCode[];
  /** Matches the failure's own message. */
  message?: RegExp;
  /** Matches a line that a program of the user, or one that builds the image, has written. */
  output?: RegExp;
}

/** Sets the failures for a group of causes. */
export const causesOf = <Code extends string>(
  of: readonly ErrorCode[],
  causes: Record<Code, Omit<KnownCause, 'of'>>,
): Record<Code, KnownCause> =>
  Object.fromEntries(
    Object.entries<Omit<KnownCause, 'of'>>(causes).map(([code, cause]) => [code, { ...cause, of }]),
  ) as Record<Code, KnownCause>;
