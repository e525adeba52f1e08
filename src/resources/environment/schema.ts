import {
  DateTime,
  ListOf,
  Name,
  named,
  Nullable,
  OneOf,
  PlainListOf,
  Reference,
  Type,
  Uuid,
} from '#platform/http/schema.ts';

/** docs/contributing/rules.md 10: PREVIEW is accepted in requests too. */
export const EnvironmentMode = OneOf(['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING']);

export const EnvironmentRequest = named(
  'EnvironmentRequest',
  Type.Object({
    name: Name,
    mode: Type.Optional(EnvironmentMode),
    cluster: Type.Optional(Uuid),
    cluster_id: Type.Optional(Uuid),
  }),
);

export const EnvironmentEditRequest = named(
  'EnvironmentEditRequest',
  Type.Object({ name: Type.Optional(Name), mode: Type.Optional(EnvironmentMode) }),
);

/** docs/contributing/rules.md, *Environment* */
export const Environment = named(
  'Environment',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    organization: Reference,
    project: Reference,
    last_updated_by: Type.Optional(Uuid),
    cloud_provider: Type.Object({ provider: Type.String(), cluster: Type.String() }),
    mode: EnvironmentMode,
    cluster_id: Uuid,
    cluster_name: Type.String(),
    expires_at: Nullable(DateTime),
  }),
);

export const EnvironmentList = ListOf(Environment);

/** docs/contributing/rules.md, *Environment stats*: `number` and `service_total_number` carry the same value (docs/contributing/rules.md 1). */
const EnvironmentStats = named(
  'EnvironmentStats',
  Type.Object({ id: Uuid, service_total_number: Type.Integer(), number: Type.Integer() }),
);
export const EnvironmentStatsList = PlainListOf(EnvironmentStats);
