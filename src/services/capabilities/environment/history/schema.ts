import { factsOf, kindsWith } from '#kernel/kinds.ts';
import { ListOf, named, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import {
  Auditing,
  Duration,
  QueueAuditing,
  ServiceExecution,
  V1_COMMON,
  V1_FIELDS,
} from '#services/capabilities/service/history/schema.ts';
import { OriginEnum, ServiceFailure, StateEnum } from '#services/capabilities/service/status/schema.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';

const StageState = OneOf(['QUEUED', 'ONGOING', 'DONE', 'ERROR', 'SKIPPED', 'CANCELED']);
const TriggerAction = OneOf([
  'DEPLOY',
  'DELETE',
  'RESTART',
  'STOP',
  'DEPLOY_DRY_RUN',
  'TERRAFORM_FORCE_UNLOCK',
  'TERRAFORM_MIGRATE_STATE',
  'DELETE_RESOURCES_ONLY',
  'UNKNOWN',
  'UNINSTALL',
]);

export const EnvironmentExecution = named(
  'EnvironmentExecution',
  Type.Object({
    identifier: Type.Object({ execution_id: Type.String(), environment_id: Uuid }),
    auditing_data: Auditing,
    status: StateEnum,
    trigger_action: TriggerAction,
    total_duration: Duration,
    stages: Type.Array(
      Type.Object({
        name: Type.String(),
        status: StageState,
        duration: Duration,
        services: Type.Array(ServiceExecution),
      }),
    ),
    action_status: OneOf(['QUEUED', 'ONGOING', 'SUCCESS', 'ERROR', 'EXECUTING', 'CANCELED', 'CANCELING', 'NEVER']),
  }),
);

const entry = (more = {}) =>
  Type.Array(
    Type.Object({
      ...V1_COMMON,
      name: Type.Optional(Type.String()),
      status: Type.Optional(StateEnum),
      error: Type.Optional(ServiceFailure),
      ...more,
    }),
  );

/** A list for each kind that the first version has. */
const lists = Object.fromEntries(
  kindsWith('historyV1').map((kind) => {
    const { group, historyV1: fields } = factsOf(kind);
    return [group!, entry(Object.assign({}, ...fields!.map((field) => V1_FIELDS[field])))];
  }),
);

/** First version of an environment's history. */
export const EnvironmentDeployment = named(
  'EnvironmentDeployment',
  Type.Object({
    ...V1_COMMON,
    status: StateEnum,
    origin: OriginEnum,
    triggered_by: Type.String(),
    ...lists,
  }),
);

export const EnvironmentQueue = ListOf(
  named(
    'QueuedDeployment',
    Type.Object({
      identifier: Type.Object({ deployment_request_id: Uuid, environment_id: Uuid }),
      auditing_data: QueueAuditing,
      trigger_action: TriggerAction,
      stages: Type.Array(
        Type.Object({
          name: Type.String(),
          status: StageState,
          services: Type.Array(
            Type.Object({
              identifier: Type.Object({ service_id: Uuid, service_type: OneOf(SERVICE_KINDS), name: Type.String() }),
              status: StageState,
              icon_uri: Type.String(),
              details: Type.Optional(Type.Object({ job_type: OneOf(['CRON', 'LIFECYCLE']) })),
            }),
          ),
        }),
      ),
    }),
  ),
);
