import { badRequest, invalidField } from '#kernel/errors.ts';
import { inSnapshot, type Context } from '#platform/context.ts';
import {
  previewDeployment,
  snapshotOf,
  type Commit,
  type DeploymentPlace,
  type DeploymentPreview,
} from '#deployments/index.ts';
import { actionOf, freezeChosen, type Trigger } from '#services/capabilities/service/actions/request.ts';
import { findRollback } from '#services/capabilities/service/rollback/index.ts';
import type { PlanNeeds } from '#services/capabilities/service/deployment-plan/needs.ts';
import { planObjects, type PlannedObjects } from '#services/capabilities/service/deployment-plan/objects.ts';
import { createCharts } from '#services/images/charts.ts';
import { readingStored } from '#services/sources/repository.ts';

/** Action to plan, and the services that it covers. */
export interface PlanRequest {
  action: Trigger;
  executionId?: string;
  /** Null for all of the environment. */
  serviceIds: string[] | null;
  signal: AbortSignal;
}

/** Plans a request as if it were made now. Stores nothing. 502 if a source gives no answer. */
export async function planRequest(context: Context, place: DeploymentPlace, needs: PlanNeeds, request: PlanRequest) {
  const { action: trigger, executionId, serviceIds, signal } = request;
  if (trigger === 'ROLLBACK' && executionId === undefined)
    throw invalidField('executionId', 'is required with the action ROLLBACK');
  if (trigger !== 'ROLLBACK' && executionId !== undefined)
    throw badRequest('executionId goes with the action ROLLBACK only.');
  const { rollback, services, shared } = await inSnapshot(context, async (inside) => {
    const found =
      executionId === undefined
        ? undefined
        : await findRollback(inside, place, place.environmentId, executionId, serviceIds?.[0]);
    return { ...(found ?? (await freezeChosen(inside, place, trigger, serviceIds, {}))), rollback: found };
  });
  const snapshot = snapshotOf({ place, action: actionOf(trigger), trigger, services, shared, rollback });
  const preview = await readingStored(
    previewDeployment(
      context.db,
      place,
      { kinds: needs.kinds, sources: { ...needs.repositories, ...needs.images, ...createCharts(context) } },
      { snapshot, resolution: rollback?.resolution ?? null },
      signal,
    ),
  );
  return toPlanView(
    place.environmentId,
    preview,
    await planObjects(context, place, needs, { snapshot, preview, signal }),
  );
}

const commitView = (commit: Commit) => ({
  git_commit_id: commit.id,
  message: commit.message,
  author_name: commit.author,
  created_at: new Date(commit.date).toISOString(),
});

function toPlanView(
  environmentId: string,
  { plan, changes }: DeploymentPreview,
  objects: ReadonlyMap<string, PlannedObjects>,
) {
  return {
    environment_id: environmentId,
    action: plan.action,
    stages: plan.stages.map(({ id, name, services }) => ({
      id,
      name,
      services: services.map((service) => {
        const { commit, settings, variables } = changes.get(service.serviceId) ?? NOTHING;
        return {
          id: service.serviceId,
          name: service.name,
          service_type: service.kind,
          steps: service.steps,
          rollout: service.rollout,
          reason: service.reason,
          changes: {
            ...(commit
              ? {
                  commit: {
                    ...(commit.from ? { from: commitView(commit.from) } : {}),
                    ...(commit.to ? { to: commitView(commit.to) } : {}),
                  },
                }
              : {}),
            settings,
            variables: variables.map(({ isSecret, type, ...rest }) => ({
              ...rest,
              is_secret: isSecret,
              variable_type: type,
            })),
            ...objectsView(objects.get(service.serviceId)),
          },
        };
      }),
    })),
  };
}

function objectsView(objects: PlannedObjects | undefined) {
  if (!objects) return {};
  return 'unknown' in objects ? { objects_unknown: objects.unknown } : { objects: objects.changes };
}

const NOTHING = { commit: null, settings: [], variables: [] };
