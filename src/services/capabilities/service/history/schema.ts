import { DateTime, ListOf, named, Nullable, OneOf, Type, Uuid } from '#platform/http/schema.ts';
import { OriginEnum, ServiceFailure, StateEnum, StatusDetails } from '#services/capabilities/service/status/schema.ts';
import { SERVICE_KINDS } from '#services/service/holder.ts';

export const Duration = Type.String({ format: 'duration', description: 'ISO 8601 duration.' });
const ServiceType = OneOf(SERVICE_KINDS);

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

export const Auditing = named(
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

const Schedule = Type.Object({
  event: Type.Optional(OneOf(['ON_START', 'ON_STOP', 'ON_DELETE', 'CRON'])),
  schedule_at: Type.Optional(Nullable(Type.String())),
});
const Chart = Type.Object({ chart_name: Type.Optional(Type.String()), chart_version: Type.Optional(Type.String()) });

/** Fields that everything in the first version has. */
export const V1_COMMON = { id: Uuid, created_at: DateTime, updated_at: DateTime };

/** Groups of fields of the first version. The facts of a kind name those that the kind has. */
export const V1_FIELDS = {
  commit: { commit: Type.Optional(Nullable(HistoryCommit)) },
  image: {
    image_name: Type.Optional(Type.String()),
    tag: Type.Optional(Type.String()),
    arguments: Type.Optional(Type.Array(Type.String())),
    entrypoint: Type.Optional(Type.String()),
  },
  schedule: { schedule: Type.Optional(Schedule) },
  repository: { repository: Type.Optional(Nullable(Chart)) },
};

/** First version of a service's history; which fields are there follows from the kind. */
export const ServiceDeployment = named(
  'ServiceDeployment',
  Type.Object({
    ...V1_COMMON,
    name: Type.Optional(Type.String()),
    ...V1_FIELDS.commit,
    ...V1_FIELDS.image,
    ...V1_FIELDS.schedule,
    ...V1_FIELDS.repository,
    status: Type.Optional(StateEnum),
    error: Type.Optional(ServiceFailure),
  }),
);

/** The same with outcomes instead of states. */
export const ServiceOutcome = named(
  'ServiceOutcome',
  Type.Object({
    ...V1_COMMON,
    name: Type.Optional(Type.String()),
    ...V1_FIELDS.commit,
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

/** Person or automation that asked for a request in a queue. */
export const QueueAuditing = Type.Object({ triggered_by: Type.String(), origin: Type.Optional(OriginEnum) });

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
