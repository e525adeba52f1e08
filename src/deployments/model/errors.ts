import { RuntimeError, type RuntimeErrorCode } from '#runtimes/runtime.ts';
import { VariableError } from '#deployments/model/variables.ts';
import type { StepName } from '#deployments/model/snapshot.ts';

/** Reasons why a service of a deployment failed, for programs; the message beside the code is for people. */
export const ERROR_CODES = {
  SOURCE_UNAVAILABLE:
    'The commit, chart or image that it is deployed from was not found, or its server gave no answer.',
  CLUSTER_UNABLE: 'The cluster cannot run what the service is configured as.',
  CLUSTER_UNAVAILABLE: 'The engine of the cluster gave no answer.',
  VARIABLES_INVALID: 'A variable or secret of the service cannot be given its value.',
  BUILD_FAILED: 'The image could not be built.',
  NOT_READY: 'A new instance did not get ready; it was removed, and its last lines are kept.',
  DISK_LIMIT: 'The organization takes more disk of the machine than the operator allows.',
  EXECUTION_FAILED: 'A command of the service came to no good end.',
  FAILED: 'Anything else: the message says what.',
} as const;
export type ErrorCode = keyof typeof ERROR_CODES;

/** Known cause of a failure (docs/causes.md). */
export interface Cause {
  code: string;
  /** Sentence that says what happened. */
  summary: string;
  /** Sentence that says what usually fixes it. */
  fix: string;
  /** Masked lines that show it, the oldest first; empty where the failure's message shows it. */
  lines: string[];
}

/** A service's failure as it is stored. */
export interface ServiceError {
  code: ErrorCode;
  /** Null where no step had begun. */
  step: StepName | null;
  message: string;
  /** Null if none of the known ones fits. */
  cause: Cause | null;
}

/** Error of a deployment that would exceed the organization's limit of disk. */
export class DiskLimitError extends Error {}

const BY_RUNTIME_CODE: Partial<Record<RuntimeErrorCode, ErrorCode>> = {
  not_ready: 'NOT_READY',
  build_failed: 'BUILD_FAILED',
  refused: 'CLUSTER_UNABLE',
  unreachable: 'CLUSTER_UNAVAILABLE',
};

const BY_STEP: Partial<Record<StepName, ErrorCode>> = {
  GIT_CLONE: 'SOURCE_UNAVAILABLE',
  BUILD: 'BUILD_FAILED',
  EXECUTING: 'EXECUTION_FAILED',
};

/** Returns the code of an error that ended a service during a step. */
export function codeOf(error: unknown, step: StepName | null): ErrorCode {
  if (error instanceof VariableError) return 'VARIABLES_INVALID';
  if (error instanceof DiskLimitError) return 'DISK_LIMIT';
  // Git has the same kind of errors as a runtime.
  if (step === 'GIT_CLONE') return 'SOURCE_UNAVAILABLE';
  const known = error instanceof RuntimeError ? BY_RUNTIME_CODE[error.code] : undefined;
  return known ?? (step ? BY_STEP[step] : undefined) ?? 'FAILED';
}

/** Returns the path below the address of the API where the log of an execution is read. */
const logPathOf = (environmentId: string, number: number): string =>
  `/environment/${environmentId}/logs?version=${environmentId}-${number}`;

/** Returns a failure as the API shows it; undefined without a failure. Rows of older releases have the message alone. */
export const toErrorView = (row: {
  error: string | null;
  error_code: string | null;
  error_step: string | null;
  error_cause: Cause | null;
  environment_id: string;
  number: number;
}) =>
  row.error === null
    ? undefined
    : {
        code: row.error_code ?? 'FAILED',
        step: row.error_step,
        message: row.error,
        cause: row.error_cause,
        log_url: logPathOf(row.environment_id, row.number),
      };
