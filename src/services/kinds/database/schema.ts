import { Name, named, Nullable, OneOf, Type, type Static } from '#platform/http/schema.ts';
import { DATABASE_TYPES } from '#services/kinds/database/engines/index.ts';
import { commonAnswer, commonInput } from '#services/service/common-fields.ts';
import { groupsAnswer, groupsRequest } from '#services/workload/groups.ts';
import { Cpu } from '#services/workload/long-running.ts';

export const MODES = ['CONTAINER', 'MANAGED'] as const;
const ACCESSIBILITIES = ['PRIVATE', 'PUBLIC'] as const;
const DISK_TYPES = ['gp2', 'gp3'] as const;

const DatabaseTypeEnum = OneOf(DATABASE_TYPES);
const ModeEnum = OneOf(MODES, {
  description: 'MANAGED is backed up every day and before it is deleted; CONTAINER is just the server.',
});
const Version = Type.String({ minLength: 1, maxLength: 50, description: 'databaseConfiguration lists them.' });

/** Fields without defaults: an edit keeps the fields that it leaves out. */
const own = {
  ...commonInput,
  accessibility: Type.Optional(OneOf(ACCESSIBILITIES)),
  cpu: Type.Optional(Cpu),
  memory: Type.Optional(Type.Integer({ minimum: 64, maximum: 10_000_000, description: 'MiB, a whole number.' })),
  storage: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 65_536, description: 'GiB. It never shrinks once it was deployed.' }),
  ),
  instance_type: Type.Optional(
    Type.String({ maxLength: 255, description: 'Kept for clusters whose machines have types.' }),
  ),
  ...groupsRequest,
};

export const DatabaseRequest = named(
  'DatabaseRequest',
  Type.Object({
    name: Name,
    type: DatabaseTypeEnum,
    version: Version,
    mode: ModeEnum,
    ...own,
  }),
);

export const DatabaseEditRequest = named(
  'DatabaseEditRequest',
  Type.Object({
    name: Type.Optional(Name),
    version: Type.Optional(Version),
    ...own,
    disk_type: Type.Optional(Nullable(OneOf(DISK_TYPES))),
  }),
);

/** Body of a create or edit request; only a create request has type and mode. */
export type DatabaseInput = Static<typeof DatabaseEditRequest> &
  Partial<Pick<Static<typeof DatabaseRequest>, 'type' | 'mode'>>;

export const Database = named(
  'Database',
  Type.Object({
    ...commonAnswer,
    type: DatabaseTypeEnum,
    version: Type.String(),
    mode: ModeEnum,
    accessibility: OneOf(ACCESSIBILITIES),
    cpu: Type.Integer(),
    instance_type: Type.Optional(Type.String()),
    memory: Type.Integer(),
    storage: Type.Integer(),
    ...groupsAnswer,
    host: Type.String(),
    port: Type.Integer(),
    maximum_cpu: Type.Integer(),
    maximum_memory: Type.Integer(),
    disk_encrypted: Type.Boolean(),
    disk_type: Type.Optional(Nullable(OneOf(DISK_TYPES))),
  }),
);

export const DatabaseConfiguration = named(
  'DatabaseConfiguration',
  Type.Object({
    database_type: DatabaseTypeEnum,
    version: Type.Array(Type.Object({ name: Type.String(), supported_mode: OneOf(MODES) })),
  }),
);

export const DatabaseVersion = named('DatabaseVersion', Type.Object({ name: Type.String() }));

export const MasterCredentials = named(
  'MasterCredentials',
  Type.Object({ host: Type.String(), port: Type.Integer(), login: Type.String(), password: Type.String() }),
);
