import { DateTime, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import {
  ERROR_CODES,
  STATES,
  STEP_NAMES,
  WARNING_CODES,
  type ErrorCode,
  type WarningCode,
} from '#deployments/index.ts';

export const StateEnum = OneOf(STATES);
export const DeploymentStatus = OneOf(['NEVER_DEPLOYED', 'OUT_OF_DATE', 'UP_TO_DATE']);
export const OriginEnum = OneOf(['API', 'CLI', 'CONSOLE', 'GIT', 'QOVERY_INTERNAL', 'SKILL', 'TERRAFORM_PROVIDER']);

export const StatusDetails = named(
  'StatusDetails',
  Type.Object({
    action: OneOf(['DEPLOY', 'DELETE', 'RESTART', 'STOP', 'UNKNOWN']),
    status: OneOf(['QUEUED', 'ONGOING', 'SUCCESS', 'ERROR', 'EXECUTING', 'CANCELED', 'CANCELING', 'NEVER']),
    sub_action: OneOf([
      'NONE',
      'TERRAFORM_PLAN_ONLY',
      'TERRAFORM_PLAN_AND_APPLY',
      'TERRAFORM_DESTROY',
      'TERRAFORM_FORCE_UNLOCK_STATE',
      'TERRAFORM_MIGRATE_STATE',
    ]),
  }),
);

/** docs/contributing/rules.md, *Status*; finished steps only (docs/contributing/rules.md 17). */
const Steps = named(
  'Steps',
  Type.Object({
    total_duration_sec: Nullable(Type.Integer()),
    total_computing_duration_sec: Type.Integer(),
    details: Type.Array(
      Type.Object({
        step_name: OneOf(STEP_NAMES),
        status: OneOf(['SUCCESS', 'ERROR', 'CANCEL', 'SKIP']),
        duration_sec: Type.Integer(),
        started_at: DateTime,
      }),
    ),
  }),
);

const FailureCause = named(
  'FailureCause',
  Type.Object(
    {
      code: Type.String({ description: 'One of docs/causes.md; later releases know more.' }),
      summary: Type.String({ description: 'Sentence that says what happened.' }),
      fix: Type.String({ description: 'Sentence that says what usually fixes it.' }),
      lines: Type.Array(Type.String(), {
        description: 'Last lines of the service or its build that show it, masked; empty where the message shows it.',
      }),
    },
    { description: 'What a failure came from; null where no known cause fits.' },
  ),
);

/** Fields of the reason of a failure, in statuses, histories, webhooks and events. */
export const FAILURE_FIELDS = {
  code: OneOf(Object.keys(ERROR_CODES) as ErrorCode[], {
    description: Object.entries(ERROR_CODES)
      .map(([code, meaning]) => `${code}: ${meaning}`)
      .join(' '),
  }),
  step: Nullable(OneOf(STEP_NAMES, { description: 'Null where it failed before its first step.' })),
  message: Type.String(),
  cause: Nullable(FailureCause),
  log_url: Type.String({ description: 'Path of the log of the execution, below the address of the API.' }),
};
export const ServiceFailure = named('ServiceFailure', Type.Object(FAILURE_FIELDS));

const ServiceWarning = named(
  'ServiceWarning',
  Type.Object({
    code: OneOf(Object.keys(WARNING_CODES) as WarningCode[], {
      description: Object.entries(WARNING_CODES)
        .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
        .join('\n'),
    }),
    message: Type.String({ description: 'What takes how much, and what would help.' }),
    since: DateTime,
  }),
);

/** Fields that the status of a service and that of an environment have in common. */
export const STATUS_FIELDS = {
  id: Uuid,
  state: StateEnum,
  status: Type.String({ description: 'RUNNING, STOPPED or ERROR when settled, else the status of `status_details`.' }),
  service_deployment_status: DeploymentStatus,
  is_part_last_deployment: Type.Boolean(),
  status_details: StatusDetails,
  deployment_request_id: Nullable(Uuid),
  deployment_requests_count: Type.Integer(),
  steps: Steps,
  execution_id: Type.Optional(Type.String()),
};

export const Status = named(
  'Status',
  Type.Object({
    ...STATUS_FIELDS,
    last_deployment_date: Type.Optional(DateTime),
    error: Type.Optional(ServiceFailure),
    warnings: Type.Optional(Type.Array(ServiceWarning)),
  }),
);
