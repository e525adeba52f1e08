import { internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { StoredDatabaseAccess } from '#services/capabilities/variables/index.ts';
import type { SpecPlace } from '#services/kind.ts';
import { accessOf, addressOf, newAccess } from '#services/kinds/database/access.ts';
import { checkUpgrade, checkVersion, imageOf, type DatabaseType } from '#services/kinds/database/engines/index.ts';
import type { DatabaseInput } from '#services/kinds/database/schema.ts';
import { toGroups, toGroupsView, type GroupsSpec } from '#services/workload/groups.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** A database's configuration as it is stored and frozen into snapshots. */
export interface DatabaseSpec extends GroupsSpec {
  type: DatabaseType;
  version: string;
  mode: 'CONTAINER' | 'MANAGED';
  accessibility: 'PRIVATE' | 'PUBLIC';
  /** Milli-CPU. */
  cpu: number;
  /** MiB. */
  memory: number;
  /** GiB. */
  storage: number;
  instance_type?: string;
  disk_type?: 'gp2' | 'gp3' | null;
  /** Image of the server, or the name of a program of the machine. */
  image: string;
  /** The volume with its files. */
  volume_id: string;
  access: StoredDatabaseAccess;
}

/** Defaults of a new database. */
const FRESH = { accessibility: 'PRIVATE', cpu: 250, memory: 512, storage: 10 } as const;

/** Makes the spec from a body: absent fields keep their value, or get the default. */
export async function toDatabaseSpec(
  context: Context,
  place: SpecPlace,
  input: DatabaseInput,
  present: DatabaseSpec | null,
): Promise<DatabaseSpec> {
  const groups = await toGroups(context, place, input, present);
  const spec = present ? await edited(context, place, input, present) : await created(context, place, input);
  return { ...spec, ...groups };
}

async function created(context: Context, place: SpecPlace, input: DatabaseInput): Promise<DatabaseSpec> {
  const { type, mode, version } = input;
  if (!type || !mode || !version) throw internal('A database without type, mode or version passed its schema.');
  checkVersion(type, version);
  const accessibility = input.accessibility ?? FRESH.accessibility;
  return {
    type,
    version,
    mode,
    ...sizesOf(input, { ...FRESH, accessibility }),
    image: imageOf(type, version, place.runtime, context.settings.databaseImagePrefix),
    volume_id: newId(),
    access: await newAccess(context, place, type, accessibility === 'PUBLIC'),
  };
}

async function edited(
  context: Context,
  place: SpecPlace,
  input: DatabaseInput,
  present: DatabaseSpec,
): Promise<DatabaseSpec> {
  for (const field of ['type', 'mode'] as const)
    if (input[field] !== undefined && input[field] !== present[field])
      throw invalidField(field, `is fixed when a database is created: it is ${present[field]}`);
  const deployed = place.service !== null && place.service.handle !== null;
  const version = input.version ?? present.version;
  checkUpgrade(present.type, present.version, version, deployed);
  if (deployed && input.storage !== undefined && input.storage < present.storage)
    throw invalidField('storage', `can't shrink: it has ${present.storage} GiB`);
  const sizes = sizesOf(input, present);
  const access = await accessOf(context, place, present.access, sizes.accessibility === 'PUBLIC');
  const image = imageOf(present.type, version, place.runtime, context.settings.databaseImagePrefix);
  return { ...present, ...sizes, version, image, access };
}

/** Returns the settings that can be changed at any time. */
function sizesOf(
  input: DatabaseInput,
  base: Omit<DatabaseSpec, 'type' | 'version' | 'mode' | 'image' | 'volume_id' | 'access'>,
) {
  const instanceType = input.instance_type ?? base.instance_type;
  const diskType = input.disk_type === undefined ? base.disk_type : input.disk_type;
  return {
    accessibility: input.accessibility ?? base.accessibility,
    cpu: input.cpu ?? base.cpu,
    memory: input.memory ?? base.memory,
    storage: input.storage ?? base.storage,
    ...(instanceType === undefined ? {} : { instance_type: instanceType }),
    ...(diskType === undefined ? {} : { disk_type: diskType }),
  };
}

export const toDatabaseView = (context: Context, row: ServiceRow, spec: DatabaseSpec): Record<string, unknown> => {
  const { access, volume_id: _volume, image: _image, ...rest } = spec;
  return {
    ...rest,
    ...addressOf(context.settings.proxyDomain, row.id, spec.type, access),
    maximum_cpu: spec.cpu,
    maximum_memory: spec.memory,
    // The volumes of a cluster are as its machine has them.
    disk_encrypted: false,
    ...toGroupsView(row, spec),
  };
};

/** Makes the configuration of a copy: an empty database with a password, a volume and a port of its own. */
export async function copyDatabaseSpec(
  context: Context,
  from: ServiceRow,
  to: { id: string; environmentId: string; runtime: string },
): Promise<DatabaseSpec> {
  const spec = from.spec as DatabaseSpec;
  const place = { organizationId: from.organization_id, environmentId: to.environmentId, serviceId: to.id };
  return {
    ...spec,
    image: imageOf(spec.type, spec.version, to.runtime, context.settings.databaseImagePrefix),
    volume_id: newId(),
    access: await newAccess(context, place, spec.type, spec.accessibility === 'PUBLIC'),
  };
}
