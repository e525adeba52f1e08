import { conflict, internal, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { makerOf } from '#platform/access/makers.ts';
import type { Context } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { nextLook, toSchedule, toScheduleView, type ScheduleInput } from '#resources/deployment-rule/hours.ts';
import * as queries from '#resources/deployment-rule/queries.ts';
import type { ContentOfPreview } from '#resources/deployment-rule/schema.ts';
import { matchesWildcard } from '#resources/deployment-rule/wildcard.ts';
import type { EnvironmentTarget } from '#resources/environment/target.ts';
import type { ProjectTarget } from '#resources/project/target.ts';

export interface ProjectRuleInput extends ScheduleInput {
  name: string;
  description?: string | null;
  mode: string;
  cluster_id: string;
  wildcard: string;
}

export interface EnvironmentRuleInput extends ScheduleInput {
  auto_preview?: boolean;
  on_demand_preview?: boolean;
  preview_databases?: ContentOfPreview;
}

const base = (row: { id: string; created_at: Date; updated_at: Date }) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

/** A rule of a project as it is answered. */
export const toProjectRuleView = (row: queries.ProjectRuleRow) => ({
  ...base(row),
  name: row.name,
  description: row.description,
  mode: row.mode,
  cluster_id: row.cluster_id,
  ...toScheduleView(row),
  wildcard: row.wildcard,
  priority_index: row.position,
});

/** The rule of an environment as it is answered. */
export const toEnvironmentRuleView = (row: queries.EnvironmentRuleRow) => ({
  ...base(row),
  on_demand_preview: row.on_demand_preview,
  auto_preview: row.auto_preview,
  preview_databases: row.preview_databases,
  ...toScheduleView(row),
});

/** Creates a rule behind those of the project. Names may repeat: the reference documents no 409. */
export async function createProjectRule(context: Context, project: ProjectTarget, input: ProjectRuleInput) {
  refuseDeleting(project);
  const { organizationId } = project;
  const id = newId();
  const columns = await toColumns(context, organizationId, input);
  await queries.insertProjectRule(context.db, {
    id,
    organization_id: organizationId,
    project_id: project.id,
    ...columns,
  });
  const after = toProjectRuleView(await findProjectRule(context, project, id));
  await audit(context, { organizationId, type: 'CREATE', ...placeOf(project, after), after });
  return after;
}

/** Changes a rule. Environments that got it keep their own copy unchanged. */
export async function editProjectRule(context: Context, project: ProjectTarget, id: string, input: ProjectRuleInput) {
  refuseDeleting(project);
  const { organizationId } = project;
  const before = toProjectRuleView(await findProjectRule(context, project, id));
  const columns = await toColumns(
    context,
    organizationId,
    { auto_stop: before.auto_stop, ...input },
    before.description,
  );
  await queries.updateProjectRule(context.db, { organizationId }, id, columns);
  const after = toProjectRuleView(await findProjectRule(context, project, id));
  await audit(context, { organizationId, type: 'UPDATE', ...placeOf(project, after), before, after });
  return after;
}

/** Deletes a rule. Environments that got it keep their own copy. */
export async function deleteProjectRule(context: Context, project: ProjectTarget, id: string): Promise<void> {
  const { organizationId } = project;
  const before = toProjectRuleView(await findProjectRule(context, project, id));
  await queries.deleteProjectRuleRow(context.db, { organizationId }, id);
  await audit(context, { organizationId, type: 'DELETE', ...placeOf(project, before), before });
}

/** Orders rules as given; rules that are not named come after them in their present order. */
export async function orderProjectRules(context: Context, project: ProjectTarget, ids: string[]) {
  refuseDeleting(project);
  const { organizationId } = project;
  const present = (await queries.listProjectRules(context.db, project, project.id).execute()).map(({ id }) => id);
  for (const [at, id] of ids.entries()) {
    const field = `project_deployment_rule_ids_in_order[${at}]`;
    if (!present.includes(id)) throw invalidField(field, 'names no deployment rule of this project');
    if (ids.indexOf(id) !== at) throw invalidField(field, 'is named twice');
  }
  const order = [...ids, ...present.filter((id) => !ids.includes(id))];
  await queries.orderProjectRules(context.db, { organizationId }, order);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    ...placeOf(project, project),
    before: { project_deployment_rule_ids_in_order: present },
    after: { project_deployment_rule_ids_in_order: order },
  });
}

/** Returns a rule of a project; 404 if it has none of that id. */
export async function findProjectRule(context: Context, project: ProjectTarget, id: string) {
  const row = await queries.findProjectRule(context.db, project, project.id, id);
  if (!row) throw notFound('Deployment rule');
  return row;
}

/** Returns the rule that a new environment of a project gets by its name: the first whose wildcard matches. */
export async function matchRule(context: Context, project: { id: string; organizationId: string }, name: string) {
  const rules = await queries.listProjectRules(context.db, project, project.id).execute();
  return rules.find((rule) => matchesWildcard(rule.wildcard, name.trim()));
}

/** Returns the person and token that set the hours: services start and stop with the rights that this person and token have then. */
function setBy({ actor }: Context): Pick<queries.EnvironmentRuleColumns, 'set_by' | 'set_with'> {
  const { userId, tokenId } = makerOf(actor);
  return { set_by: userId, set_with: tokenId };
}

/** Gives a new environment its rule: that of its project, that of another environment, or one that stops nothing. */
export async function giveRule(
  context: Context,
  environment: { id: string; organizationId: string },
  from: queries.ProjectRuleRow | queries.EnvironmentRuleRow | undefined,
): Promise<void> {
  const previews =
    from && 'auto_preview' in from
      ? {
          auto_preview: from.auto_preview,
          on_demand_preview: from.on_demand_preview,
          preview_databases: from.preview_databases as ContentOfPreview,
        }
      : {};
  const { auto_stop, timezone, start_time, stop_time, weekdays } = from ?? {};
  await queries.insertEnvironmentRule(context.db, {
    id: newId(),
    organization_id: environment.organizationId,
    environment_id: environment.id,
    ...previews,
    ...setBy(context),
    ...(from ? { auto_stop, timezone, start_time, stop_time, weekdays } : {}),
    next_at: from ? nextLook(from, context.clock.now()) : null,
  });
}

/** Returns the rule that every environment has. */
export async function environmentRule(context: Context, environment: { id: string; organizationId: string }) {
  const row = await queries.findEnvironmentRule(context.db, environment, environment.id);
  if (!row) throw internal(`Environment ${environment.id} has no deployment rule.`);
  return row;
}

/** Changes the hours of an environment. Services keep their present state until the hours begin or end the next time. */
export async function editEnvironmentRule(
  context: Context,
  environment: EnvironmentTarget,
  id: string,
  input: EnvironmentRuleInput,
) {
  refuseDeleting(environment);
  const { organizationId } = environment;
  const present = await environmentRule(context, environment);
  if (present.id !== id) throw notFound('Deployment rule');
  const schedule = toSchedule({ auto_stop: present.auto_stop, ...input });
  const same = JSON.stringify(toScheduleView(present)) === JSON.stringify(toScheduleView(schedule));
  await queries.updateEnvironmentRule(context.db, { organizationId }, id, {
    ...schedule,
    auto_preview: input.auto_preview ?? present.auto_preview,
    on_demand_preview: input.on_demand_preview ?? present.on_demand_preview,
    preview_databases: input.preview_databases ?? (present.preview_databases as ContentOfPreview),
    next_at: same ? present.next_at : nextLook(schedule, context.clock.now()),
    ...setBy(context),
  });
  const [before, after] = [present, await environmentRule(context, environment)].map(toEnvironmentRuleView);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    target: { type: 'ENVIRONMENT', id: environment.id, name: environment.name, sub: 'DEPLOYMENT_RULE' },
    project: { id: environment.projectId, name: environment.project_name },
    environment: { id: environment.id, name: environment.name },
    before,
    after,
  });
  return after;
}

async function toColumns(
  context: Context,
  organizationId: string,
  input: ProjectRuleInput,
  description: string | null = null,
): Promise<queries.ProjectRuleColumns> {
  if (!(await queries.findClusterOf(context.db, { organizationId }, input.cluster_id)))
    throw invalidField('cluster_id', 'names no cluster of this organization');
  return {
    name: input.name.trim(),
    description: input.description === undefined ? description : input.description,
    mode: input.mode,
    cluster_id: input.cluster_id,
    wildcard: input.wildcard,
    ...toSchedule(input),
  };
}

function refuseDeleting(holder: { name: string; deleting: boolean }): void {
  if (holder.deleting) throw conflict(`${holder.name} is being deleted: only DELETE is possible.`);
}

const placeOf = (project: ProjectTarget, rule: { id: string; name: string }) => ({
  target: { type: 'PROJECT' as const, id: rule.id, name: rule.name, sub: 'DEPLOYMENT_RULE' as const },
  project: { id: project.id, name: project.name },
});
