import { conflict, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Location } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import type { Call } from '#platform/http/route.ts';
import { audit } from '#platform/events/audit.ts';
import { environmentRule } from '#resources/deployment-rule/index.ts';
import { listStages } from '#resources/deployment-stage/index.ts';
import {
  makeEnvironment,
  placeOf,
  toEnvironmentView,
  withRule,
  type EnvironmentTarget,
  type ForkHead,
} from '#resources/environment/index.ts';
import { projectTarget, type ProjectTarget } from '#resources/project/index.ts';
import type { CloneEnvironmentInput } from '#services/capabilities/environment/clone/schema.ts';
import { copyServices, keepModeOfSecrets, placeIn } from '#services/capabilities/service/clone/index.ts';
import type { ContentOfCopy, Kind } from '#services/kind.ts';
import { forkServiceRefusal } from '#services/service/forks.ts';
import { listAllServicesByEnvironment, type ServiceRow } from '#services/service/queries.ts';

/** Source of a clone, and the check of rights: those of a caller, or of an arrangement for later. */
type CloneCall = Context & Pick<Call<EnvironmentTarget>, 'target' | 'require'>;

export interface CloneOptions {
  /** True for a preview: rule and services of the clone make no previews themselves. */
  isPreview?: boolean;
  /** Head of the fork whose code the clone runs. Services that may not run beside it are left out. */
  fork?: ForkHead;
}

/**
 * Clones an environment with its stages, variables and services into its project or another one of the organization. Services that are
 * being deleted are left out, and so are Argo CD apps, which cannot be created through the API. Throws 409 for one that runs the code of a
 * fork.
 */
export async function cloneEnvironment(
  call: CloneCall,
  kinds: Kind[],
  input: CloneEnvironmentInput,
  { isPreview = false, fork }: CloneOptions = {},
) {
  const source = call.target;
  const { organizationId } = source;
  if (source.deleting) throw conflict(`Environment ${source.name} is being deleted.`);
  const project = await findProject(call, input.project_id ?? source.projectId);
  const wanted = await cloneInput(call, project, input, isPreview);
  call.require('environment.create', { ...project, mode: wanted.mode });
  const stages = await listStages(call.db, { organizationId }, source.id);
  const stageIds = new Map(stages.map((stage) => [stage.id, newId()]));
  const environment = await makeEnvironment(
    call,
    project,
    wanted,
    stages.map(({ id, name, description }) => ({ id: stageIds.get(id)!, name, description })),
    fork,
  );
  call.require('cluster.use', { organizationId, clusterId: environment.cluster_id });
  const byKind = new Map(kinds.filter((kind) => kind.capabilities?.clone).map((kind) => [kind.kind as string, kind]));
  const rows = await listAllServicesByEnvironment(call.db, { organizationId }, source.id).execute();
  const services = rows
    .filter((row) => byKind.has(row.kind) && !row.deleting && !(fork && forkServiceRefusal(row)))
    .map((row) => ({
      row: isPreview && 'auto_preview' in row.spec ? { ...row, spec: { ...row.spec, auto_preview: false } } : row,
      kind: byKind.get(row.kind)!,
      id: newId(),
      name: row.name,
      stageId: stageIds.get(row.stage_id)!,
    }));
  await copyServices(call, call.require, {
    from: source,
    to: placeIn(environment),
    services,
    whole: true,
    isNewFork: fork !== undefined,
  });
  if (isPreview && !fork) await fillDatabases(call, placeIn(environment), services);
  const view = toEnvironmentView(environment);
  await audit(call, {
    organizationId,
    type: 'CLONE',
    ...placeOf(environment),
    after: {
      ...view,
      cloned_from: source.id,
      services: services.map(({ id, name, row }) => ({ id, name, cloned_from: row.id })),
    },
  });
  return view;
}

/** Notes which content the copies of a preview start with, as the rule of its source says. Throws 409 where that would cross a border of mode. */
async function fillDatabases(
  call: CloneCall,
  clone: Location & { mode: string },
  services: { row: ServiceRow; kind: Kind; id: string }[],
): Promise<void> {
  const source = call.target;
  const { preview_databases: content } = await environmentRule(call, source);
  const filled = services.filter(({ kind }) => kind.capabilities?.clone?.fillCopy);
  if (content === 'EMPTY' || filled.length === 0) return;
  if (source.mode === 'PRODUCTION' && clone.mode !== source.mode)
    throw conflict(
      `Data of ${source.name}, which is a PRODUCTION environment, is not copied into one of the mode ${clone.mode}: set preview_databases of its deployment rule to EMPTY.`,
    );
  for (const place of [source, clone]) call.require('database.backup', place);
  for (const { row, kind, id } of filled)
    await kind.capabilities!.clone!.fillCopy!(call, row, id, content as ContentOfCopy);
}

/** Throws 400 if secrets forbid that an environment gets another mode. The caller locks its row. */
export async function checkModeChange(
  context: Context,
  kinds: Kind[],
  environment: EnvironmentTarget,
  mode: string,
): Promise<void> {
  const byKind = new Map(kinds.map((kind) => [kind.kind as string, kind]));
  const rows = await listAllServicesByEnvironment(context.db, environment, environment.id).execute();
  const services = rows.flatMap((row) => (byKind.has(row.kind) ? [{ row, kind: byKind.get(row.kind)! }] : []));
  await keepModeOfSecrets(context, environment, services, mode);
}

/** Returns the fields of the clone: from the matching rule of its project if the input asks for it, else from its source. */
async function cloneInput(call: CloneCall, project: ProjectTarget, input: CloneEnvironmentInput, isPreview: boolean) {
  const { name, mode, cluster_id } = input;
  const source = call.target;
  const like = { name, mode: mode ?? source.mode, cluster_id: cluster_id ?? source.cluster_id };
  if (!input.apply_deployment_rule) {
    const rule = await environmentRule(call, source);
    return { ...like, rule: isPreview ? { ...rule, auto_preview: false, on_demand_preview: false } : rule };
  }
  const ruled = await withRule(call, project, { name, mode, cluster_id });
  return ruled.rule ? ruled : like;
}

async function findProject(call: CloneCall, id: string) {
  const project = await projectTarget.find(call.db, id, [call.target.organizationId], { lock: true });
  if (!project) throw invalidField('project_id', 'names no project of this organization');
  return project;
}
