import { internal } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { audit } from '#platform/events/audit.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironmentIds, visibleEnvironments, visibleProjects } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import * as queries from '#resources/project/queries.ts';

const refuseTakenName = takenNames('project', 'project of the organization');

export interface ProjectInput {
  name: string;
  description?: string;
}

/** Returns a project as it is answered to a caller who does not see all of its environments. */
export function toVisibleProjectView(principal: Principal, row: queries.ProjectRow) {
  const ids = visibleEnvironmentIds(principal, row.organization_id, 'environment.read', row.id);
  return toProjectView(ids ? { ...row, environments: ids.length } : row);
}

/** A project as it is answered. */
const toProjectView = (row: queries.ProjectRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  description: row.description ?? '',
  associated_environments_count: row.environments,
  organization: { id: row.organization_id },
});

/** Creates a project; 409 if the organization has one of that name (docs/contributing/rules.md 8). */
export async function createProject(context: Context, organizationId: string, input: ProjectInput) {
  const id = newId();
  const name = input.name.trim();
  await refuseTakenName(name, () =>
    queries.insertProject(context.db, {
      id,
      organization_id: organizationId,
      name,
      description: input.description ?? null,
    }),
  );
  const view = toProjectView(await findRow(context, organizationId, id));
  await audit(context, {
    organizationId,
    type: 'CREATE',
    target: { type: 'PROJECT', id, name },
    project: { id, name },
    after: view,
  });
  return view;
}

/** Changes name and description; fields that are left out stay. The answer is what a GET gives this caller. */
export async function editProject(
  context: Context,
  principal: Principal,
  project: queries.ProjectRow,
  input: ProjectInput,
) {
  const scope = { organizationId: project.organization_id };
  const name = input.name.trim();
  const change = { name, ...(input.description === undefined ? {} : { description: input.description }) };
  await refuseTakenName(name, () => queries.updateProject(context.db, scope, project.id, change));
  const row = await findRow(context, project.organization_id, project.id);
  await audit(context, {
    organizationId: project.organization_id,
    type: 'UPDATE',
    target: { type: 'PROJECT', id: project.id, name },
    project: { id: project.id, name },
    before: toProjectView(project),
    after: toProjectView(row),
  });
  return toVisibleProjectView(principal, row);
}

/** Counts the services and environments of each project of the organization. */
export async function projectStats(context: Context, principal: Principal, organizationId: string) {
  const visible = visibleProjects(principal, organizationId);
  const rows = await queries
    .listProjectStats(context.db, { organizationId }, visibleEnvironments(principal, organizationId))
    .where(visible)
    .execute();
  return {
    results: rows.map((row) => ({
      id: row.id,
      service_total_number: row.services,
      environment_total_number: row.environments,
    })),
  };
}

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findProjectById(context.db, [organizationId], id);
  if (!row) throw internal(`Project ${id} is gone within its own transaction.`);
  return row;
}
