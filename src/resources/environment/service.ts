import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId, shortId } from '#kernel/ids.ts';
import type { Principal } from '#platform/access/principal.ts';
import { visibleEnvironments } from '#platform/access/visibility.ts';
import type { Context } from '#platform/context.ts';
import { takenNames } from '#platform/database/taken-name.ts';
import { audit } from '#platform/events/audit.ts';
import { giveRule, matchRule, type EnvironmentRuleRow, type ProjectRuleRow } from '#resources/deployment-rule/index.ts';
import type { ProjectTarget } from '#resources/project/index.ts';
import * as queries from '#resources/environment/queries.ts';

const refuseTakenName = takenNames('environment', 'environment of the project');

/** Stages that every environment begins with. */
export const DEFAULT_STAGES = ['DATABASE DEFAULT', 'JOB DEFAULT', 'CONTAINER DEFAULT', 'APPLICATION DEFAULT'];

const NAMESPACE_PREFIX = 'env-z';

export interface EnvironmentInput {
  name: string;
  mode?: string;
  cluster?: string;
  cluster_id?: string;
  /** Deployment rule that it begins with: of its project, or of the environment that it is a copy of. */
  rule?: ProjectRuleRow | EnvironmentRuleRow;
}

/** An environment as it is answered (docs/contributing/rules.md, *Environment*). */
export const toEnvironmentView = (row: queries.EnvironmentRow) => ({
  id: row.id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
  name: row.name,
  organization: { id: row.organization_id },
  project: { id: row.project_id },
  last_updated_by: row.last_updated_by ?? undefined,
  cloud_provider: { provider: row.cloud_provider, cluster: row.cluster_name },
  mode: row.mode,
  cluster_id: row.cluster_id,
  cluster_name: row.cluster_name,
  expires_at: row.expires_at?.toISOString() ?? null,
});

/**
 * Fills in mode and cluster that a body leaves out from the rule of the project that matches the name. The result is what will be made, so
 * that the caller can be asked for the right to it.
 */
export async function withRule<I extends EnvironmentInput>(context: Context, project: ProjectTarget, input: I) {
  const rule = await matchRule(context, project, input.name);
  const cluster = input.cluster === undefined && input.cluster_id === undefined ? rule?.cluster_id : input.cluster_id;
  return { ...input, mode: input.mode ?? rule?.mode ?? 'DEVELOPMENT', cluster_id: cluster, rule };
}

/**
 * Creates an environment with its default stages; 409 if the project has one of that name, 400 without a cluster
 * (docs/contributing/rules.md 10).
 */
export async function createEnvironment(context: Context, project: ProjectTarget, input: EnvironmentInput) {
  const stages = DEFAULT_STAGES.map((name) => ({ id: newId(), name, description: '' }));
  const row = await makeEnvironment(context, project, input, stages);
  const view = toEnvironmentView(row);
  await audit(context, { organizationId: row.organization_id, type: 'CREATE', ...placeOf(row), after: view });
  return view;
}

/**
 * Creates an environment with the given stages in their order, and writes no event: its caller does. `fork` marks it as one that runs the code
 * of a fork, for as long as it exists.
 */
export async function makeEnvironment(
  context: Context,
  project: { id: string; name: string; organizationId: string; deleting: boolean },
  input: EnvironmentInput,
  stages: { id: string; name: string; description: string }[],
  fork?: queries.ForkHead,
): Promise<queries.EnvironmentRow> {
  const { organizationId } = project;
  if (project.deleting) throw conflict(`Project ${project.name} is being deleted.`);
  const id = newId();
  const name = input.name.trim();
  const environment = {
    id,
    organization_id: organizationId,
    project_id: project.id,
    cluster_id: await chooseCluster(context, organizationId, input),
    name,
    mode: input.mode ?? 'DEVELOPMENT',
    last_updated_by: context.actor.userId,
    ...fork,
  };
  await refuseTakenName(name, () => queries.insertEnvironment(context.db, environment));
  await queries.insertStages(
    context.db,
    stages.map((stage, position) => ({ ...stage, organization_id: organizationId, environment_id: id, position })),
  );
  await giveRule(context, { id, organizationId }, input.rule);
  return findRow(context, organizationId, id);
}

/** Changes name and mode; fields that are left out stay. */
export async function editEnvironment(
  context: Context,
  environment: queries.EnvironmentRow,
  input: { name?: string; mode?: string },
) {
  if (environment.deleting) throw conflict(`Environment ${environment.name} is being deleted.`);
  const organizationId = environment.organization_id;
  const name = input.name?.trim() ?? environment.name;
  const change = { name, mode: input.mode ?? environment.mode, last_updated_by: context.actor.userId };
  await refuseTakenName(name, () => queries.updateEnvironment(context.db, { organizationId }, environment.id, change));
  const row = await findRow(context, organizationId, environment.id);
  await audit(context, {
    organizationId,
    type: 'UPDATE',
    ...placeOf(row),
    before: toEnvironmentView(environment),
    after: toEnvironmentView(row),
  });
  return toEnvironmentView(row);
}

/** Counts the services of each environment of a project (docs/contributing/rules.md, *Endpoints*, endpoint 1). */
export async function environmentStats(context: Context, principal: Principal, project: ProjectTarget) {
  const visible = visibleEnvironments(principal, project.organizationId);
  const rows = await queries.countServicesByProject(context.db, project, project.id).where(visible).execute();
  return { results: rows.map((row) => ({ id: row.id, service_total_number: row.services, number: row.services })) };
}

/** Returns the Kubernetes namespace of an environment. It follows from the id, so that renaming the environment moves nothing. */
export const kubernetesNamespaceOf = (environmentId: string): string => `${NAMESPACE_PREFIX}${shortId(environmentId)}`;

/** Returns the first digits of the environment's id in a namespace; undefined for a namespace of no environment. */
export const environmentOfNamespace = (namespace: string): string | undefined =>
  new RegExp(`^${NAMESPACE_PREFIX}([0-9a-f]{8})$`).exec(namespace)?.[1];

/** Returns the fields by which events name an environment. */
export const placeOf = (row: queries.EnvironmentRow) => ({
  target: { type: 'ENVIRONMENT' as const, id: row.id, name: row.name },
  project: { id: row.project_id, name: row.project_name },
  environment: { id: row.id, name: row.name },
});

async function chooseCluster(context: Context, organizationId: string, input: EnvironmentInput): Promise<string> {
  const { cluster, cluster_id } = input;
  if (cluster && cluster_id && cluster !== cluster_id)
    throw invalidField('cluster', 'cluster and cluster_id name two clusters: give one of them');
  const wanted = cluster ?? cluster_id;
  if (wanted === undefined) {
    const implied = await queries.findImpliedCluster(context.db, { organizationId });
    if (!implied)
      throw invalidField('cluster', 'is required: the organization has no default cluster and not just one');
    return implied;
  }
  if (!(await queries.findClusterId(context.db, { organizationId }, wanted)))
    throw invalidField(cluster ? 'cluster' : 'cluster_id', 'names no cluster of this organization');
  return wanted;
}

async function findRow(context: Context, organizationId: string, id: string) {
  const row = await queries.findEnvironmentById(context.db, [organizationId], id);
  if (!row) throw internal(`Environment ${id} is gone within its own transaction.`);
  return row;
}
