import { hasFact } from '#kernel/kinds.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { findEnvironmentById, placeOf, type EnvironmentTarget } from '#resources/environment/index.ts';
import { deleteProjectRow, markProjectDeleting, type ProjectTarget } from '#resources/project/index.ts';
import {
  deleteEnvironmentRow,
  listEnvironmentsOfProject,
  markEnvironmentDeleting,
} from '#services/capabilities/environment/actions/queries.ts';
import {
  deleteServices,
  listForSnapshot,
  listNeverApplied,
  markServicesDeleting,
} from '#services/capabilities/service/actions/queries.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';

/** Throws 403 if the caller may not remove services of these kinds at the place. */
export function requireRemoval(
  require: Call['require'],
  kinds: string[],
  at: { organizationId: string; projectId: string; mode: string },
): void {
  if (kinds.some((kind) => hasFact(kind, 'guarded'))) require('workload.delete', at);
}

/** Deletes an environment: what is in it is torn down first. Answers whether it is gone already. */
export async function deleteEnvironment(
  context: Context,
  environment: EnvironmentTarget,
  require: Call['require'],
  skipReconcile: boolean,
): Promise<boolean> {
  const scope = { organizationId: environment.organizationId };
  const rows = await listForSnapshot(context.db, scope, environment.id, null);
  requireRemoval(
    require,
    rows.map((row) => row.kind),
    { ...scope, projectId: environment.projectId, mode: environment.mode },
  );
  if (environment.deleting) return false;
  await audit(context, {
    organizationId: environment.organizationId,
    type: 'DELETE',
    ...placeOf(environment),
    before: { id: environment.id, name: environment.name },
  });
  const gone = await listNeverApplied(
    context.db,
    scope,
    rows.map((row) => row.id),
  );
  await deleteServices(context.db, scope, gone);
  const left = rows.filter((row) => !gone.includes(row.id)).map((row) => row.id);
  if (left.length === 0) {
    await deleteEnvironmentRow(context.db, scope, environment.id);
    return true;
  }
  await markEnvironmentDeleting(context.db, scope, environment.id);
  await markServicesDeleting(context.db, scope, left);
  await submit(context, placeOfEnvironment(environment), 'DELETE', null, { bestEffort: skipReconcile });
  return false;
}

/** Deletes a project with all its environments; the row goes with the last of them. */
export async function deleteProject(context: Context, project: ProjectTarget, require: Call['require']): Promise<void> {
  if (project.deleting) return;
  const scope = { organizationId: project.organizationId };
  await audit(context, {
    organizationId: project.organizationId,
    type: 'DELETE',
    target: { type: 'PROJECT', id: project.id, name: project.name },
    project: { id: project.id, name: project.name },
    before: { id: project.id, name: project.name },
  });
  let left = 0;
  for (const { id, mode } of await listEnvironmentsOfProject(context.db, scope, project.id)) {
    require('environment.delete', { ...scope, projectId: project.id, mode });
    const row = await findEnvironmentById(context.db, [project.organizationId], id);
    const target = {
      ...row!,
      organizationId: project.organizationId,
      projectId: project.id,
      environmentId: id,
      clusterId: row!.cluster_id,
    };
    if (!(await deleteEnvironment(context, target, require, false))) left++;
  }
  if (left === 0) await deleteProjectRow(context.db, scope, project.id);
  else await markProjectDeleting(context.db, scope, project.id);
}
