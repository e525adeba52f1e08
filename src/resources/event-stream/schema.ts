import { STREAM_TYPES } from '#platform/events/stream.ts';
import { EndEvent } from '#platform/http/server-sent-events.ts';
import { DateTime, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { STATES } from '#deployments/index.ts';
import { Event } from '#resources/event/index.ts';

/** Fields that every event of a deployment has: time, place and deployment request. */
const PLACE = {
  at: DateTime,
  organization_id: Uuid,
  project_id: Nullable(Uuid),
  project_name: Type.Optional(Type.String({ description: 'Left out once the project is gone.' })),
  environment_id: Nullable(Uuid),
  environment_name: Type.Optional(Type.String({ description: 'Left out once the environment is gone.' })),
  deployment_request_id: Uuid,
  execution_id: Type.String(),
};

const Service = Type.Object({ id: Uuid, name: Type.String(), service_type: Type.String() });
const State = OneOf(STATES);

export const DeploymentEvent = named(
  'StreamDeploymentEvent',
  Type.Object({ ...PLACE, action: Type.String(), trigger_action: Type.String(), status: State }),
);

export const ServiceStateEvent = named(
  'StreamServiceStateEvent',
  Type.Object({
    ...PLACE,
    service: Service,
    state: State,
    status_details: Type.Object({ action: Type.String(), status: Type.String(), sub_action: Type.String() }),
  }),
);

export const ServiceWarningEvent = named(
  'StreamServiceWarningEvent',
  Type.Object({
    at: DateTime,
    organization_id: Uuid,
    project_id: Nullable(Uuid),
    environment_id: Nullable(Uuid),
    service: Service,
    code: Type.String(),
    message: Nullable(Type.String({ description: 'Null once the warning is over.' })),
  }),
);

export const StepEvent = named(
  'StreamStepEvent',
  Type.Object({
    ...PLACE,
    service: Service,
    step_name: Type.String(),
    status: OneOf(['ONGOING', 'SUCCESS', 'ERROR', 'CANCEL', 'SKIP']),
    started_at: DateTime,
    ended_at: Nullable(DateTime),
  }),
);

export const LogEvent = named(
  'StreamLogEvent',
  Type.Object({
    ...PLACE,
    lines: Type.Array(
      Type.Object({
        timestamp: DateTime,
        service_id: Nullable(Uuid),
        step: Type.String(),
        message: Type.String(),
        error: Type.Boolean({ description: 'Set on the line that says why something failed.' }),
      }),
    ),
  }),
);

export const ResetEvent = named(
  'StreamResetEvent',
  Type.Object({ reason: OneOf(['REMOVED', 'RESTORED']), message: Type.String() }),
);

export const StreamQuery = Type.Object({
  types: Type.Optional(
    Type.Array(OneOf(STREAM_TYPES), {
      minItems: 1,
      uniqueItems: true,
      description:
        'Kinds of events, all but `log` without. `log` also takes an environment, a service or a deployment request.',
    }),
  ),
  projectId: Type.Optional(Uuid),
  environmentId: Type.Optional(Uuid),
  serviceId: Type.Optional({ ...Uuid, description: 'Of audit events, those whose target it is.' }),
  deploymentRequestId: Type.Optional({ ...Uuid, description: 'Audit events belong to none and are left out.' }),
  lastEventId: Type.Optional(
    Type.String({
      description: 'What the header `Last-Event-ID` would say, for clients that cannot set it; the header wins.',
    }),
  ),
});
export type StreamQuery = Static<typeof StreamQuery>;

/** The events by name, each with what its `data` is: OpenAPI 3.0 has no words of its own for them. */
export const EventStreamText = Type.String({
  description:
    'Server-Sent Events. Each has an `id` to resume from by `Last-Event-ID`, an `event` (a key of `x-events`) and `data` (JSON).',
  'x-events': {
    deployment: DeploymentEvent,
    'service-state': ServiceStateEvent,
    'service-warning': ServiceWarningEvent,
    step: StepEvent,
    audit: Event,
    log: LogEvent,
    reset: ResetEvent,
    end: EndEvent,
  },
});
