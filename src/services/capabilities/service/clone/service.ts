import { conflict, internal, invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import type { Call } from '#platform/http/route.ts';
import { audit } from '#platform/events/audit.ts';
import { listStages } from '#resources/deployment-stage/index.ts';
import {
  environmentTarget,
  makeEnvironment,
  placeOf,
  toEnvironmentView,
  withRule,
  type EnvironmentRow,
  type EnvironmentTarget,
} from '#resources/environment/index.ts';
import { environmentRule } from '#resources/deployment-rule/index.ts';
import { projectTarget, type ProjectTarget } from '#resources/project/index.ts';
import { copyServices, keepModeOfSecrets } from '#services/capabilities/service/clone/copy.ts';
import type { CloneEnvironmentInput, CloneServiceInput } from '#services/capabilities/service/clone/schema.ts';
import type { Kind } from '#services/kind.ts';
import { findDefaultStage, findServiceById, listAllServicesByEnvironment } from '#services/service/queries.ts';
import {
  placeOfService,
  refuseDeleting,
  refuseTakenName,
  toRecordedView,
  toServiceView,
} from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Clones a service into its own or another environment of the organization. Throws 409 if that environment has a service of that name. */
export async function cloneService(call: Call<ServiceTarget>, kind: Kind, input: CloneServiceInput) {
  const service = call.target;
  refuseDeleting(service);
  const { organizationId } = service;
  const environment = await findEnvironment(call, organizationId, input.environment_id);
  const id = newId();
  const name = input.name.trim();
  const stageId = await findStage(call, kind, service, environment.id);
  await refuseTakenName(name, () =>
    copyServices(call, call.require, {
      from: service,
      to: environment,
      services: [{ kind, row: service, id, name, stageId }],
      whole: false,
    }),
  );
  const row = await findServiceById(call.db, [organizationId], id);
  if (!row) throw internal(`Service ${id} is gone within its own transaction.`);
  const view = toServiceView(call, kind, row);
  await audit(call, {
    organizationId,
    type: 'CLONE',
    ...placeOfService(row),
    after: { ...toRecordedView(call, kind, row), cloned_from: service.id },
  });
  return view;
}

/** Finds and locks the environment that a body names. Throws 403 unless the caller may create services there. */
async function findEnvironment(call: Call<ServiceTarget>, organizationId: string, id: string) {
  const environment = await environmentTarget.find(call.db, id, [organizationId], { lock: true });
  if (!environment) throw invalidField('environment_id', 'names no environment of this organization');
  call.require('service.create', environment);
  if (environment.deleting)
    throw conflict(`Environment ${environment.name} is being deleted: nothing can be created in it.`);
  return environment;
}

/**
 * Finds the stage of the copy. In the same environment it is the same stage, in another one that of the same name, else the kind's default.
 */
async function findStage(call: Call, kind: Kind, service: ServiceTarget, environmentId: string): Promise<string> {
  if (environmentId === service.environmentId) return service.stage_id;
  const scope = { organizationId: service.organizationId };
  const present = (await listStages(call.db, scope, service.environmentId)).find(({ id }) => id === service.stage_id);
  const same = (await listStages(call.db, scope, environmentId)).find(({ name }) => name === present?.name);
  return same?.id ?? (await findDefaultStage(call.db, scope, environmentId, kind.defaultStage)).id;
}

/**
 * Clones an environment with its stages, variables and services into its project or another one of the organization. Services that are
 * being deleted are left out, and so are Argo CD apps, which cannot be created through the API.
 */
export async function cloneEnvironment(call: Call<EnvironmentTarget>, kinds: Kind[], input: CloneEnvironmentInput) {
  const source = call.target;
  const { organizationId } = source;
  if (source.deleting) throw conflict(`Environment ${source.name} is being deleted.`);
  const project = await findProject(call, input.project_id ?? source.projectId);
  const wanted = await cloneInput(call, project, input);
  call.require('environment.create', { ...project, mode: wanted.mode });
  const stages = await listStages(call.db, { organizationId }, source.id);
  const stageIds = new Map(stages.map((stage) => [stage.id, newId()]));
  const environment = await makeEnvironment(
    call,
    project,
    wanted,
    stages.map(({ id, name, description }) => ({ id: stageIds.get(id)!, name, description })),
  );
  call.require('cluster.use', { organizationId, clusterId: environment.cluster_id });
  const byKind = new Map(kinds.filter((kind) => kind.capabilities?.clone).map((kind) => [kind.kind as string, kind]));
  const rows = await listAllServicesByEnvironment(call.db, { organizationId }, source.id).execute();
  const services = rows
    .filter((row) => byKind.has(row.kind) && !row.deleting)
    .map((row) => ({
      row,
      kind: byKind.get(row.kind)!,
      id: newId(),
      name: row.name,
      stageId: stageIds.get(row.stage_id)!,
    }));
  await copyServices(call, call.require, { from: source, to: placeIn(environment), services, whole: true });
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

/** Returns a new environment as the target of a copy. */
export const placeIn = (environment: EnvironmentRow) => ({
  organizationId: environment.organization_id,
  projectId: environment.project_id,
  environmentId: environment.id,
  mode: environment.mode,
  clusterId: environment.cluster_id,
  runtime: environment.runtime,
});

/** Returns the fields of the clone: from the matching rule of its project if the input asks for it, else from its source. */
async function cloneInput(call: Call<EnvironmentTarget>, project: ProjectTarget, input: CloneEnvironmentInput) {
  const { name, mode, cluster_id } = input;
  const source = call.target;
  const like = { name, mode: mode ?? source.mode, cluster_id: cluster_id ?? source.cluster_id };
  if (!input.apply_deployment_rule) return { ...like, rule: await environmentRule(call, source) };
  const ruled = await withRule(call, project, { name, mode, cluster_id });
  return ruled.rule ? ruled : like;
}

async function findProject(call: Call<EnvironmentTarget>, id: string) {
  const project = await projectTarget.find(call.db, id, [call.target.organizationId], { lock: true });
  if (!project) throw invalidField('project_id', 'names no project of this organization');
  return project;
}
