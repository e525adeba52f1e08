import { kindsWith } from '#kernel/kinds.ts';
import { DateTime, named, Nullable, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

/** A line of a deployment's log, second form. */
export const DeploymentLogLine = named(
  'EnvironmentLogs',
  Type.Object({
    type: Type.String(),
    timestamp: DateTime,
    details: Type.Object({
      organization_id: Type.Optional(Uuid),
      cluster_id: Type.Optional(Uuid),
      execution_id: Type.Optional(Type.String()),
      transmitter: Type.Optional(
        Type.Object({
          id: Type.Optional(Uuid),
          name: Type.Optional(Type.String()),
          type: Type.Optional(Type.String()),
        }),
      ),
      stage: Type.Optional(
        Type.Object({
          step: Type.Optional(Type.String()),
          id: Type.Optional(Nullable(Uuid)),
          name: Type.Optional(Nullable(Type.String())),
        }),
      ),
    }),
    error: Type.Optional(
      Nullable(
        Type.Object({
          tag: Type.Optional(Type.String()),
          user_log_message: Type.Optional(Type.String()),
          link: Type.Optional(Type.String()),
          hint_message: Type.Optional(Type.String()),
          underlying_error: Type.Optional(
            Type.Object({ message: Type.Optional(Type.String()), full_details: Type.Optional(Type.String()) }),
          ),
        }),
      ),
    ),
    message: Type.Optional(
      Nullable(Type.Object({ safe_message: Type.Optional(Type.String()), full_details: Type.Optional(Type.String()) })),
    ),
  }),
);

/** A line of a deployment's log, first form. */
const EnvironmentLog = named(
  'EnvironmentLog',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    scope: Type.Object({ type: OneOf([...kindsWith('logScope'), 'ENVIRONMENT']), name: Type.String(), id: Uuid }),
    state: Type.Optional(
      OneOf([
        'CANCELED',
        'CANCELING',
        'DELETED',
        'DELETE_ERROR',
        'DELETE_IN_PROGRESS',
        'DEPLOYED',
        'DEPLOYMENT_ERROR',
        'DEPLOYMENT_IN_PROGRESS',
        'ERROR',
        'PAUSED',
        'PAUSE_ERROR',
        'PAUSE_IN_PROGRESS',
        'WAITING',
      ]),
    ),
    message: Nullable(Type.String()),
    execution_id: Type.Optional(Type.String()),
    hint: Type.Optional(Type.String()),
  }),
);
export const EnvironmentLogList = PlainListOf(EnvironmentLog);
