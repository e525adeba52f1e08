import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

/** Execution of a service. */
export const ServiceRun = named(
  'ServiceRun',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    event: OneOf(['START', 'STOP', 'DELETE', 'CRON']),
    state: OneOf(['WAITING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED']),
    scheduled_at: Nullable(DateTime),
    started_at: Nullable(DateTime),
    ended_at: Nullable(DateTime),
    duration_sec: Nullable(Type.Integer()),
    attempts: Type.Integer({ description: 'How often the command was begun.' }),
    exit_code: Nullable(Type.Integer({ description: 'Status of the last attempt, null where a signal ended it.' })),
    signal: Nullable(Type.String()),
    reason: Nullable(OneOf(['exited', 'timeout', 'lost'])),
    error: Nullable(Type.String()),
    deployment_request_id: Nullable(Uuid),
    execution_id: Nullable(Type.String({ description: 'Execution of the environment that it was a step of.' })),
  }),
);

export const ServiceRunLog = PlainListOf(
  named('ServiceRunLogLine', Type.Object({ id: Uuid, created_at: DateTime, message: Type.String() })),
);

export const CleanFailed = named(
  'CleanFailedResponse',
  Type.Object({ clean_kubernetes_jobs: Type.Array(Type.String()) }),
);
