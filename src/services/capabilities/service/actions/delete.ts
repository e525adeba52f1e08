import { hasFact } from '#kernel/kinds.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import type { Call } from '#platform/http/route.ts';
import { findEnvironmentById, placeOf, type EnvironmentTarget } from '#resources/environment/index.ts';
import { deleteProjectRow, markProjectDeleting, type ProjectTarget } from '#resources/project/index.ts';
import * as queries from '#services/capabilities/service/actions/queries.ts';
import {
  placeOfEnvironment,
  placeOfTarget,
  submit,
  type ActionOptions,
} from '#services/capabilities/service/actions/request.ts';
import { placeOfService } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Throws 403 if the caller may not remove services of these kinds at the place. */
export function requireRemoval(
  require: Call['require'],
  kinds: string[],
  at: { organizationId: string; projectId: string; mode: string },
): void {
  if (kinds.some((kind) => hasFact(kind, 'guarded'))) require('workload.delete', at);
}

/**
 * Deletes a service: its teardown is requested, and the row goes at its end; one of which nothing was ever applied is gone at once
 * (docs/contributing/rules.md 19). A second delete changes nothing.
 */
export async function deleteService(
  context: Context,
  service: ServiceTarget,
  options: Pick<ActionOptions, 'bestEffort' | 'choices'>,
): Promise<void> {
  if (service.deleting) return;
  await queries.lockEnvironmentRow(context.db, service, service.environmentId);
  const scope = { organizationId: service.organizationId };
  await audit(context, {
    organizationId: service.organizationId,
    type: 'DELETE',
    ...placeOfService(service),
    before: { id: service.id, name: service.name },
  });
  const gone = await queries.listNeverApplied(context.db, scope, [service.id]);
  if (gone.length > 0) {
    await queries.deleteServices(context.db, scope, gone);
    return;
  }
  await queries.markServicesDeleting(context.db, scope, [service.id]);
  await submit(context, placeOfTarget(service), 'DELETE', [service.id], options);
}

/** Deletes an environment: what is in it is torn down first. Answers whether it is gone already. */
export async function deleteEnvironment(
  context: Context,
  environment: EnvironmentTarget,
  require: Call['require'],
  skipReconcile: boolean,
): Promise<boolean> {
  const scope = { organizationId: environment.organizationId };
  const rows = await queries.listForSnapshot(context.db, scope, environment.id, null);
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
  const gone = await queries.listNeverApplied(
    context.db,
    scope,
    rows.map((row) => row.id),
  );
  await queries.deleteServices(context.db, scope, gone);
  const left = rows.filter((row) => !gone.includes(row.id)).map((row) => row.id);
  if (left.length === 0) {
    await queries.deleteEnvironmentRow(context.db, scope, environment.id);
    return true;
  }
  await queries.markEnvironmentDeleting(context.db, scope, environment.id);
  await queries.markServicesDeleting(context.db, scope, left);
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
  for (const { id, mode } of await queries.listEnvironmentsOfProject(context.db, scope, project.id)) {
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
