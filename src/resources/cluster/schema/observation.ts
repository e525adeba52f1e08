import { kindsWith } from '#kernel/kinds.ts';
import { DateTime, named, OneOf, PlainListOf, Type, Uuid } from '#platform/http/schema.ts';

const text = Type.Optional(Type.String());
/** Parameter of the interface of another server that makes no difference to this one. */
const unused = Type.Optional(Type.String({ description: 'Has no effect here.' }));

const details = {
  provider_kind: text,
  region: text,
  transmitter: Type.Optional(Type.Object({ type: text, id: text, name: text })),
};

/** Steps of a cluster's work. */
const STEPS = [
  'LoadConfiguration',
  'Create',
  'Created',
  'CreateError',
  'Pause',
  'Paused',
  'PauseError',
  'Delete',
  'Deleted',
  'DeleteError',
  'RetrieveClusterConfig',
  'RetrieveClusterResources',
  'ValidateSystemRequirements',
  'UnderMigration',
  'Unknown',
] as const;
export type Step = (typeof STEPS)[number];

/** A line about the work on a cluster. */
const ClusterLog = named(
  'ClusterLog',
  Type.Object({
    type: text,
    timestamp: Type.Optional(DateTime),
    step: Type.Optional(OneOf(STEPS)),
    message: Type.Optional(Type.Object({ safe_message: text })),
    error: Type.Optional(
      Type.Object({
        tag: text,
        user_log_message: text,
        link: text,
        hint_message: text,
        event_details: Type.Optional(Type.Object(details)),
        underlying_error: Type.Optional(Type.Object({ message: text })),
      }),
    ),
    details: Type.Optional(Type.Object(details)),
  }),
);
export const ClusterLogList = PlainListOf(ClusterLog);

const Time = (description: string) => Type.String({ description });

export const EventsQuery = Type.Object({
  from_date_time: Time('RFC 3339, or Unix digits in s, ms, µs or ns by their length.'),
  to_date_time: Time('RFC 3339, or Unix digits in s, ms, µs or ns by their length.'),
  node_name: text,
  pod_name: text,
  reporting_component: text,
});

/** Something that happened on a cluster. */
const ClusterEvent = named(
  'ClusterEvent',
  Type.Object({
    created_at: Type.Optional(DateTime),
    kind: text,
    namespace: text,
    name: text,
    reason: text,
    message: text,
    type: text,
    reporting_component: text,
    count: Type.Optional(Type.Integer()),
    first_occurrence: Type.Optional(DateTime),
    last_occurrence: Type.Optional(DateTime),
  }),
);
export const ClusterEventList = PlainListOf(ClusterEvent);

/** Query of the interface of Prometheus. */
export const MetricsQuery = Type.Object({
  endpoint: Type.String({ description: '`query` or `query_range`.' }),
  query: Type.String({
    description: 'A metric by its name, with labels at most: `quarterdeck_service_cpu_cores{service_id="…"}`.',
  }),
  start: text,
  end: text,
  step: text,
  time: text,
  timeout: unused,
  dedup: unused,
  partial_response: unused,
  max_source_resolution: unused,
  engine: unused,
  analyze: unused,
  board_short_name: unused,
  metric_short_name: unused,
  trace_id: unused,
  range: unused,
});
export const ClusterMetrics = named(
  'ClusterMetrics',
  Type.Object({ metrics: Type.String({ description: 'Answer in the form of Prometheus, as text.' }) }),
);

/** Query of the interface of Loki. */
export const LogsQuery = Type.Object({
  endpoint: Type.String({ description: '`query`, `query_range` or `labels`.' }),
  query: Type.String({ description: 'LogQL: labels with = and !=, lines with |= and !=.' }),
  start: text,
  end: text,
  limit: text,
  since: text,
  step: Type.Optional(
    Type.String({ description: 'Has no effect: in Loki only metrics have steps, and lines have `interval`.' }),
  ),
  interval: Type.Optional(
    Type.String({ description: 'Only lines that are at least so far from the one before, such as `5s`.' }),
  ),
  direction: text,
  time: text,
});
export const ClusterLogsAnswer = named(
  'ClusterLogsAnswer',
  Type.Object({ response: Type.String({ description: 'Answer in the form of Loki, as text.' }) }),
);

/** An environment on a cluster with its services. */
const ClusterEnvironment = named(
  'ClusterEnvironment',
  Type.Object({
    environment_id: Uuid,
    environment_name: Type.String(),
    project_id: Uuid,
    project_name: Type.String(),
    services: Type.Array(
      Type.Object({
        id: Uuid,
        name: Type.String(),
        type: OneOf(kindsWith('linked')),
      }),
    ),
  }),
);
export const ClusterEnvironmentList = PlainListOf(ClusterEnvironment);
