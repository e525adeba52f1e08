import { EVENT_TYPES, SUB_TARGET_TYPES, TARGET_TYPES } from '#platform/events/audit.ts';
import { DateTime, named, Nullable, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

const ORIGINS = ['API', 'CLI', 'CONSOLE', 'GIT', 'QOVERY_INTERNAL', 'SKILL', 'TERRAFORM_PROVIDER'] as const;

const EventType = named('OrganizationEventType', OneOf(EVENT_TYPES));
const TargetType = named('OrganizationEventTargetType', OneOf(TARGET_TYPES));
const SubTargetType = OneOf(SUB_TARGET_TYPES);
const Origin = named('OrganizationEventOrigin', OneOf(ORIGINS));

const timestamp = (description: string) =>
  Type.Optional(
    Nullable(Type.String({ description: `${description} RFC 3339, or Unix time in s, ms, µs or ns by its length.` })),
  );

/** Filters that events and targets have in common. */
const FILTERS = {
  fromTimestamp: timestamp('Events of this time or later.'),
  toTimestamp: timestamp('Events before this time.'),
  eventType: Type.Optional(EventType),
  targetType: Type.Optional(TargetType),
  triggeredBy: Type.Optional(Type.String({ description: 'Exactly the name in `triggered_by`.' })),
  origin: Type.Optional(Origin),
};

export const EventQuery = Type.Object({
  pageSize: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 100, default: 10 }))),
  continueToken: Type.Optional(Type.String({ description: 'Out of `links.next`: the events before those.' })),
  stepBackToken: Type.Optional(Type.String({ description: 'Out of `links.previous`: the events after those.' })),
  ...FILTERS,
  targetId: Type.Optional(Nullable(Uuid)),
  subTargetType: Type.Optional(Nullable(SubTargetType)),
  serviceProjectId: Type.Optional(Uuid),
  serviceEnvironmentId: Type.Optional(Uuid),
});
export type EventQuery = Static<typeof EventQuery>;

export const TargetQuery = Type.Object({
  ...FILTERS,
  projectId: Type.Optional(
    Type.String({ ...Uuid, description: 'Mandatory for environments and services, unless projects are fetched.' }),
  ),
  environmentId: Type.Optional(
    Type.String({ ...Uuid, description: 'Mandatory for services, unless projects or environments are fetched.' }),
  ),
  targetLevelToFetch: Type.Optional(
    OneOf(['PROJECT', 'ENVIRONMENT'], {
      description: 'Fetches the projects or environments that the events took place in, instead of their targets.',
    }),
  ),
});
export type TargetQuery = Static<typeof TargetQuery>;

/** Event as lists and streams answer it. */
export const Event = named(
  'OrganizationEvent',
  Type.Object({
    id: Uuid,
    timestamp: DateTime,
    event_type: EventType,
    target_id: Nullable(Uuid),
    target_name: Type.String(),
    target_type: TargetType,
    sub_target_type: Nullable(SubTargetType),
    change: Type.Optional(Type.String({ description: 'JSON text: the state after the change, without secrets.' })),
    original_change: Nullable(Type.String({ description: 'JSON text: the state before it.' })),
    origin: Origin,
    triggered_by: Type.String(),
    project_id: Nullable(Uuid),
    project_name: Type.Optional(Type.String()),
    environment_id: Nullable(Uuid),
    environment_name: Type.Optional(Type.String()),
    user_agent: Nullable(Type.String()),
  }),
);

export const EventList = named(
  'OrganizationEventList',
  Type.Object({
    links: Type.Object({
      previous: Type.Optional(Type.String({ format: 'uri', description: 'The page of newer events.' })),
      next: Type.Optional(Type.String({ format: 'uri', description: 'The page of older events.' })),
    }),
    organization_max_limit_reached: Type.Boolean({ description: 'Always false: nothing is held back.' }),
    events: Type.Array(Event),
  }),
);

export const TargetList = named(
  'OrganizationEventTargetList',
  Type.Object({
    targets: Type.Array(named('OrganizationEventTarget', Type.Object({ id: Uuid, name: Type.String() }))),
  }),
);
