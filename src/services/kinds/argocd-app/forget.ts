import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { audit } from '#platform/events/audit.ts';
import { deleteApps, listApps } from '#services/kinds/argocd-app/queries.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Removes the services that represent apps of an Argo CD, of all its destinations or of one. The apps themselves keep running. */
export async function forgetApps(
  context: Context,
  scope: Scope,
  argoCdId: string,
  destination?: string,
): Promise<void> {
  await removeApps(context, scope, await listApps(context.db, scope, argoCdId, destination));
}

/** Removes services that represent apps of an Argo CD. */
export async function removeApps(context: Context, scope: Scope, rows: ServiceRow[]): Promise<void> {
  if (rows.length === 0) return;
  await deleteApps(
    context.db,
    scope,
    rows.map((row) => row.id),
  );
  for (const row of rows)
    await audit(context, {
      organizationId: scope.organizationId,
      type: 'DELETE',
      ...placeOfService(row),
      before: { id: row.id, name: row.name },
    });
}
