import { factsOf, SERVICE_KINDS } from '#kernel/kinds.ts';
import type { Context } from '#platform/context.ts';
import { environmentStatuses, serviceStatuses, type ServiceStatus } from '#deployments/index.ts';
import { listStages } from '#resources/deployment-stage/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';

/** Kind of service by the name of its group in grouped answers. */
const GROUPS = Object.fromEntries(SERVICE_KINDS.map((kind) => [factsOf(kind).group!, kind]));
export const GROUP_NAMES = Object.keys(GROUPS);

const group = (statuses: (ServiceStatus & { kind: string })[]) =>
  Object.fromEntries(GROUP_NAMES.map((name) => [name, statuses.filter((status) => status.kind === GROUPS[name])]));

/** Reads the status of the environment and of all its services, in two statements. */
export async function allStatuses(context: Context, environment: EnvironmentTarget) {
  const [own] = await environmentStatuses(context.db, environment, [environment.id]);
  return {
    environment: own,
    ...group(await serviceStatuses(context.db, environment, { environmentIds: [environment.id] })),
  };
}

/** Reads the status of the environment and of all its services, grouped by stage. */
export async function statusesByStage(context: Context, environment: EnvironmentTarget) {
  const { db } = context;
  const [own] = await environmentStatuses(db, environment, [environment.id]);
  const statuses = await serviceStatuses(db, environment, { environmentIds: [environment.id] });
  const stages = await listStages(db, environment, environment.id);
  const stageOf = new Map(
    (
      await db
        .selectFrom('service')
        .select(['id', 'stage_id'])
        .where('organization_id', '=', environment.organizationId)
        .where('environment_id', '=', environment.id)
        .execute()
    ).map((row) => [row.id, row.stage_id]),
  );
  return {
    environment: own,
    stages: stages.map((stage) => {
      const here = statuses.filter((status) => stageOf.get(status.id) === stage.id);
      return {
        ...group(here),
        stage: {
          id: stage.id,
          name: stage.name,
          description: stage.description,
          steps: stepsOfStage(stage.id, here),
          status: stageStatus(here.map((status) => status.status_details.status)),
        },
      };
    }),
    pre_check_stage: { status: 'SUCCESS', total_duration_sec: 0 },
  };
}

const stepsOfStage = (id: string, statuses: ServiceStatus[]) => {
  const durations = statuses.flatMap((status) =>
    status.steps.total_duration_sec === null ? [] : [status.steps.total_duration_sec],
  );
  return { stage_id: id, total_duration_sec: durations.length === 0 ? null : Math.max(...durations), details: [] };
};

/** Returns a stage's status from those of its services: the worst that is under way, else the worst end. */
export function stageStatus(statuses: string[]): 'QUEUED' | 'ONGOING' | 'DONE' | 'ERROR' | 'SKIPPED' | 'CANCELED' {
  if (statuses.length === 0 || statuses.every((status) => status === 'NEVER')) return 'SKIPPED';
  if (statuses.some((status) => ['ONGOING', 'EXECUTING', 'CANCELING'].includes(status))) return 'ONGOING';
  if (statuses.includes('QUEUED')) return 'QUEUED';
  if (statuses.includes('ERROR')) return 'ERROR';
  return statuses.includes('CANCELED') ? 'CANCELED' : 'DONE';
}
