import { factsOf, kindsWith } from '#kernel/kinds.ts';
import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { OriginEnum, ServiceFailure, StateEnum, StatusDetails } from '#services/capabilities/service/status/schema.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';

const Duration = Type.String({ format: 'duration', description: 'ISO 8601 duration.' });
const ServiceType = OneOf(SERVICE_KINDS);
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

const HistoryCommit = named(
  'HistoryCommit',
  Type.Object({
    created_at: DateTime,
    git_commit_id: Type.String(),
    tag: Type.String(),
    message: Type.String(),
    author_name: Type.String(),
    author_avatar_url: Type.Optional(Type.String()),
    commit_page_url: Type.Optional(Type.String()),
  }),
);

const Auditing = named(
  'Auditing',
  Type.Object({
    created_at: DateTime,
    updated_at: DateTime,
    triggered_by: Type.String(),
    origin: Type.Optional(OriginEnum),
  }),
);
const Arguments = Type.Object({ arguments: Type.Array(Type.String()), entrypoint: Type.Optional(Type.String()) });

/** Fields that a kind adds to its executions. The kind decides which of them are present. */
const ServiceDetails = named(
  'ExecutionDetails',
  Type.Object({
    commit: Type.Optional(Nullable(HistoryCommit)),
    build_pod_name: Type.Optional(Nullable(Type.String())),
    image_name: Type.Optional(Type.String()),
    tag: Type.Optional(Type.String()),
    arguments: Type.Optional(Type.Array(Type.String())),
    entrypoint: Type.Optional(Type.String()),
    schedule: Type.Optional(
      Type.Object({
        on_start: Type.Optional(Arguments),
        on_stop: Type.Optional(Arguments),
        on_delete: Type.Optional(Arguments),
        cron_job: Type.Optional(
          Type.Object({
            arguments: Type.Array(Type.String()),
            entrypoint: Type.Optional(Type.String()),
            scheduled_at: Type.String(),
            timezone: Type.String(),
          }),
        ),
        lifecycle_type: Type.Optional(OneOf(['GENERIC', 'TERRAFORM', 'CLOUDFORMATION'])),
      }),
    ),
    job_type: Type.Optional(OneOf(['CRON', 'LIFECYCLE'])),
    repository: Type.Optional(
      Type.Object({ chart_name: Type.Optional(Type.String()), chart_version: Type.Optional(Type.String()) }),
    ),
  }),
);

export const ServiceExecution = named(
  'ServiceExecution',
  Type.Object({
    identifier: Type.Object({
      name: Type.String(),
      service_id: Uuid,
      service_type: ServiceType,
      execution_id: Type.Optional(Type.String()),
    }),
    status: StateEnum,
    auditing_data: Auditing,
    details: ServiceDetails,
    status_details: StatusDetails,
    icon_uri: Type.String(),
    total_duration: Type.Optional(Duration),
    error: Type.Optional(ServiceFailure),
  }),
);

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

const stamped = { id: Uuid, created_at: DateTime, updated_at: DateTime };
const entry = (more = {}) =>
  Type.Array(
    Type.Object({
      ...stamped,
      name: Type.Optional(Type.String()),
      status: Type.Optional(StateEnum),
      error: Type.Optional(ServiceFailure),
      ...more,
    }),
  );
const commit = { commit: Type.Optional(Nullable(HistoryCommit)) };
const image = {
  image_name: Type.Optional(Type.String()),
  tag: Type.Optional(Type.String()),
  arguments: Type.Optional(Type.Array(Type.String())),
  entrypoint: Type.Optional(Type.String()),
};

const Schedule = Type.Object({
  event: Type.Optional(OneOf(['ON_START', 'ON_STOP', 'ON_DELETE', 'CRON'])),
  schedule_at: Type.Optional(Nullable(Type.String())),
});
const Chart = Type.Object({ chart_name: Type.Optional(Type.String()), chart_version: Type.Optional(Type.String()) });

const FIELDS = {
  commit,
  image,
  schedule: { schedule: Type.Optional(Schedule) },
  repository: { repository: Type.Optional(Nullable(Chart)) },
};

/** A list for each kind that the first version has. */
const lists = Object.fromEntries(
  kindsWith('historyV1').map((kind) => {
    const { group, historyV1: fields } = factsOf(kind);
    return [group!, entry(Object.assign({}, ...fields!.map((field) => FIELDS[field])))];
  }),
);

/** First version of an environment's history. */
export const EnvironmentDeployment = named(
  'EnvironmentDeployment',
  Type.Object({
    ...stamped,
    status: StateEnum,
    origin: OriginEnum,
    triggered_by: Type.String(),
    ...lists,
  }),
);

/** First version of a service's history; which fields are there follows from the kind. */
export const ServiceDeployment = named(
  'ServiceDeployment',
  Type.Object({
    ...stamped,
    name: Type.Optional(Type.String()),
    ...commit,
    ...image,
    schedule: Type.Optional(Schedule),
    repository: Type.Optional(Nullable(Chart)),
    status: Type.Optional(StateEnum),
    error: Type.Optional(ServiceFailure),
  }),
);

/** The same with outcomes instead of states. */
export const ServiceOutcome = named(
  'ServiceOutcome',
  Type.Object({
    ...stamped,
    name: Type.Optional(Type.String()),
    ...commit,
    status: Type.Optional(OneOf(['FAILED', 'SUCCESS'])),
    error: Type.Optional(ServiceFailure),
  }),
);

/** Histories keep the reference's own paging, with `pagination` beside it (docs/contributing/rules.md 4). */
export const HistoryOf = <T extends import('typebox').TSchema>(item: T) =>
  Type.Object({
    page: Type.Integer(),
    page_size: Type.Integer(),
    results: Type.Array(item),
    pagination: Type.Object({
      page: Type.Integer(),
      page_size: Type.Integer(),
      total_count: Type.Integer(),
      total_pages: Type.Integer(),
    }),
  });

const QueueAuditing = Type.Object({ triggered_by: Type.String(), origin: Type.Optional(OriginEnum) });

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
              identifier: Type.Object({ service_id: Uuid, service_type: ServiceType, name: Type.String() }),
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

export const ServiceQueue = ListOf(
  named(
    'QueuedService',
    Type.Object({
      identifier: Type.Object({
        deployment_request_id: Uuid,
        service_id: Uuid,
        service_type: ServiceType,
        name: Type.String(),
      }),
      auditing_data: QueueAuditing,
      status_details: StatusDetails,
      icon_uri: Type.String(),
    }),
  ),
);
