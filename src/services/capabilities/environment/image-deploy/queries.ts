import { sql, type Database, type Scope } from '#platform/database/index.ts';
import { selectServices } from '#services/service/queries.ts';

/** Services of a kind in the organization that are not being deleted, with a flag of their configuration set (`auto_deploy`). */
export const listServicesWithFlag = (db: Database, scope: Scope, kind: string, flag: 'auto_deploy' | 'auto_preview') =>
  selectServices(db)
    .where('service.organization_id', '=', scope.organizationId)
    .where('service.kind', '=', kind)
    .where('service.deleting', '=', false)
    .where('environment.deleting', '=', false)
    // Previews are clones, which nothing makes of an environment that runs the code of a fork.
    .$if(flag === 'auto_preview', (query) => query.where('environment.fork_ref', 'is', null))
    .where(sql<boolean>`coalesce((service.spec ->> ${flag})::boolean, false)`)
    // Always in one order, since each environment is locked on the way.
    .orderBy('service.environment_id')
    .orderBy('service.id')
    .execute();
