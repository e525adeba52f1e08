import type { KindTerraform } from '#services/kind.ts';
import type { DatabaseSpec } from '#services/kinds/database/spec.ts';
import { groupAttributes } from '#services/hcl/long-running.ts';

/** A database as a resource of the Terraform provider (`qovery_database`): it gets credentials of its own. */
export const databaseTerraform: KindTerraform<DatabaseSpec> = {
  resource: 'qovery_database',
  attributes: (spec) => ({
    type: spec.type,
    version: spec.version,
    mode: spec.mode,
    accessibility: spec.accessibility,
    cpu: spec.cpu,
    memory: spec.memory,
    storage: spec.storage,
    instance_type: spec.instance_type,
    ...groupAttributes(spec),
  }),
};
