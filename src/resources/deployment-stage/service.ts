import { badRequest, conflict, invalidField, notFound } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import type { Context } from '#platform/context.ts';
import { slicePage } from '#platform/http/paging.ts';
import type { PageQuery } from '#platform/http/schema.ts';
import { audit, type EventType } from '#platform/events/audit.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import * as queries from '#resources/deployment-stage/queries.ts';
import type { StageTarget } from '#resources/deployment-stage/target.ts';

interface StageInput {
  name: string;
  description?: string | null;
}

type Stored = Awaited<ReturnType<typeof queries.listStages>>[number];
type StoredService = Awaited<ReturnType<typeof queries.listStageServices>>[number];

const toStageView = (stage: Stored, services: StoredService[]) => ({
  id: stage.id,
  created_at: stage.created_at.toISOString(),
  updated_at: stage.updated_at.toISOString(),
  environment: { id: stage.environment_id },
  name: stage.name,
  description: stage.description,
  deployment_order: stage.position,
  services: services
    .filter((service) => service.stage_id === stage.id)
    .map((service) => ({
      id: service.id,
      created_at: service.created_at.toISOString(),
      updated_at: service.updated_at.toISOString(),
      service_id: service.id,
      service_type: service.kind,
      is_skipped: service.is_skipped,
    })),
});

interface Place {
  organizationId: string;
  environmentId: string;
}

/** Lists the stages of an environment in their order, with their services. */
export async function listStageViews(context: Context, place: Place, page: PageQuery = {}) {
  const stages = await queries.listStages(context.db, place, place.environmentId);
  const services = await queries.listStageServices(context.db, place, place.environmentId);
  return slicePage(
    stages.map((stage) => toStageView(stage, services)),
    page,
  );
}

/** Returns a stage with its services, as it is answered. */
export async function stageView(context: Context, place: Place, stage: Stored) {
  return toStageView(stage, await queries.listStageServices(context.db, place, place.environmentId));
}

/** Creates a stage after the present ones. */
export async function createStage(context: Context, environment: EnvironmentTarget, input: StageInput) {
  const stages = await queries.listStages(context.db, environment, environment.id);
  const name = refuseTaken(stages, input.name.trim());
  const id = newId();
  await queries.insertStage(context.db, {
    id,
    organization_id: environment.organizationId,
    environment_id: environment.id,
    name,
    description: input.description ?? '',
    position: (stages.at(-1)?.position ?? -1) + 1,
  });
  await tell(
    context,
    environment,
    'UPDATE',
    { environmentName: environment.name, projectName: environment.project_name },
    undefined,
    { stage: name },
  );
  const { results } = await listStageViews(context, environment);
  return results.find((stage) => stage.id === id)!;
}

export async function editStage(context: Context, stage: StageTarget, input: StageInput) {
  const stages = await queries.listStages(context.db, stage, stage.environment_id);
  const name = refuseTaken(
    stages.filter((other) => other.id !== stage.id),
    input.name.trim(),
  );
  const description = input.description === undefined ? stage.description : (input.description ?? '');
  await queries.updateStage(context.db, stage, stage.id, { name, description });
  await tellOfStage(
    context,
    stage,
    { stage: stage.name, description: stage.description },
    { stage: name, description },
  );
  const { results } = await listStageViews(context, stage);
  return results.find((other) => other.id === stage.id)!;
}

/** Deletes an empty stage; 400 while services are in it, or if it is the last one. */
export async function removeStage(context: Context, stage: StageTarget): Promise<void> {
  const { results } = await listStageViews(context, stage);
  if (results.length === 1) throw badRequest('An environment needs a stage: this is the last one.');
  if (results.find((other) => other.id === stage.id)!.services.length > 0)
    throw badRequest('The stage has services: move them to another stage first.');
  await queries.deleteStage(context.db, stage, stage.id);
  await queries.orderStages(
    context.db,
    stage,
    results.filter((other) => other.id !== stage.id).map((other) => other.id),
  );
  await tellOfStage(context, stage, { stage: stage.name }, undefined);
}

/** Moves a stage directly before or after another one of its environment. */
export async function moveStage(context: Context, stage: StageTarget, otherId: string, side: 'before' | 'after') {
  const ids = (await queries.listStages(context.db, stage, stage.environment_id)).map((row) => row.id);
  if (!ids.includes(otherId)) throw notFound('Stage');
  if (otherId === stage.id) throw badRequest('A stage cannot be moved next to itself: name another one.');
  const others = ids.filter((id) => id !== stage.id);
  others.splice(others.indexOf(otherId) + (side === 'after' ? 1 : 0), 0, stage.id);
  await queries.orderStages(context.db, stage, others);
  await tellOfStage(context, stage, { order: ids }, { order: others });
  return listStageViews(context, stage);
}

/** Puts a service into the stage, and says whether deployments of the environment leave it out. */
export async function attachService(
  context: Context,
  stage: StageTarget,
  serviceId: string,
  isSkipped: boolean | undefined,
) {
  const change = { stage_id: stage.id, ...(isSkipped === undefined ? {} : { is_skipped: isSkipped }) };
  const updated = await queries.attachService(context.db, stage, stage.environment_id, serviceId, change);
  if (updated.numUpdatedRows === 0n) throw notFound('Service');
  await tellOfStage(context, stage, undefined, { stage: stage.name, service_id: serviceId, is_skipped: isSkipped });
  return listStageViews(context, stage);
}

function refuseTaken(stages: Stored[], name: string): string {
  if (name === '') throw invalidField('name', 'must not be blank');
  if (stages.some((stage) => stage.name.toLowerCase() === name.toLowerCase()))
    throw conflict(`The name "${name}" is taken by another stage of the environment: choose another.`);
  return name;
}

const tellOfStage = (context: Context, stage: StageTarget, before: unknown, after: unknown) =>
  tell(
    context,
    stage,
    'UPDATE',
    { environmentName: stage.environment_name, projectName: stage.project_name },
    before,
    after,
  );

const tell = (
  context: Context,
  place: { organizationId: string; projectId: string; environmentId: string },
  type: EventType,
  names: { environmentName: string; projectName: string },
  before: unknown,
  after: unknown,
) =>
  audit(context, {
    organizationId: place.organizationId,
    type,
    target: { type: 'ENVIRONMENT', id: place.environmentId, name: names.environmentName },
    project: { id: place.projectId, name: names.projectName },
    environment: { id: place.environmentId, name: names.environmentName },
    before,
    after,
  });
