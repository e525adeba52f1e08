import { Type, Uuid } from '#platform/http/schema.ts';
import type { Kind } from '#services/kind.ts';
import { application } from '#services/kinds/application/index.ts';
import { fillCopy, fillFirst } from '#services/kinds/database/backups/fill.ts';
import { backUpBeforeRemoval } from '#services/kinds/database/backups/last.ts';
import { backupRoutes } from '#services/kinds/database/backups/routes.ts';
import { databaseDeployment, databaseNeeds, openDatabase } from '#services/kinds/database/deploy.ts';
import { linkedApplicationRoutes } from '#services/kinds/database/links/routes.ts';
import { databaseRoutes } from '#services/kinds/database/routes.ts';
import { Database, DatabaseEditRequest, DatabaseRequest, type DatabaseInput } from '#services/kinds/database/schema.ts';
import { databaseTerraform } from '#services/kinds/database/terraform.ts';
import { copyDatabaseSpec, toDatabaseSpec, toDatabaseView, type DatabaseSpec } from '#services/kinds/database/spec.ts';

/** Database server with a volume of its own; backed up if its mode is MANAGED. */
export const database: Kind<DatabaseSpec, DatabaseInput & { name: string }> = {
  kind: 'DATABASE',
  path: 'database',
  tag: 'Database',
  listTag: 'Databases',
  defaultStage: 'DATABASE DEFAULT',
  schemas: { create: DatabaseRequest, edit: DatabaseEditRequest, answer: Database },
  toSpec: toDatabaseSpec,
  toView: toDatabaseView,
  deployment: databaseDeployment,
  hooks: { open: openDatabase, afterDeployment: fillFirst, beforeRemoval: backUpBeforeRemoval },
  requires: databaseNeeds,
  deploy: {
    query: Type.Object({
      applyImmediately: Type.Optional(
        Type.Boolean({ description: 'Changes are always applied at once: there is no maintenance window here.' }),
      ),
    }),
    group: 'databases',
    entry: Uuid,
    choose: () => ({}),
  },
  terraform: databaseTerraform,
  routes: (needs) => [...databaseRoutes, ...backupRoutes(needs), ...linkedApplicationRoutes(application)],
  capabilities: { clone: { copySpec: copyDatabaseSpec, fillCopy } },
};
