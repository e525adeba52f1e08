import type { MeasuredService } from '#housekeeping/disk-queries.ts';
import type { Verdict } from '#housekeeping/disk-rules.ts';
import { withDeadline } from '#kernel/deadline.ts';
import { keepLastLines, maskLines, setWarning, type DeploymentPlace } from '#deployments/index.ts';
import { hasFact } from '#kernel/kinds.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { audit, type TargetType } from '#platform/events/audit.ts';
import type { LogLine, Runtime, RuntimeContext } from '#runtimes/runtime.ts';

/** Seconds in which a runtime ends an instance and starts it anew. */
const REPLACE_SECONDS = 300;

/** Names the audit log's actor for what the limits do. */
const ACTOR = 'quarterdeck disk limit';

/** Requests the stop of a service, in the transaction of the context. */
export type StopService = (context: Context, place: DeploymentPlace, serviceId: string) => Promise<unknown>;

/** Service that takes disk, with the executions that the runtime holds of it. */
export type ActedService = MeasuredService & { tasks: string[] };

export interface ActParts {
  stopService: StopService;
  platform: Platform;
  installationId: string;
  runtime: Runtime;
  signal: AbortSignal;
}

/** Does what a verdict asks for. Answers what was ended, null where nothing was. */
export async function act(
  parts: ActParts,
  service: ActedService,
  verdict: Verdict,
): Promise<'instance' | 'execution' | 'service' | null> {
  switch (verdict.code) {
    case 'INSTANCE_DISK_LIMIT':
      return verdict.item.kind === 'task'
        ? endExecutions(parts, { ...service, tasks: [verdict.item.name] }, verdict, { isEvent: true })
        : replace(parts, service, verdict);
    case 'VOLUME_LIMIT':
      return hasFact(service.kind, 'longRunning')
        ? stop(parts, service, verdict)
        : endExecutions(parts, service, verdict);
    case 'VOLUME_FULL':
    case 'VOLUME_NEARLY_FULL':
      await inTransaction(systemContext(parts.platform, ACTOR), (context) => warn(context, service, verdict));
      return null;
  }
}

async function replace(parts: ActParts, service: MeasuredService, verdict: Verdict) {
  const { runtime, platform } = parts;
  const { item, reason, message } = verdict;
  const lines = await inTime(parts, async (context) =>
    runtime.replaceInstance?.(identityOf(parts, service), item.name, reason!, context),
  );
  // It ended by itself meanwhile, or the runtime has nothing of it to begin with.
  if (!lines) return null;
  const told: LogLine = {
    at: new Date().toISOString(),
    instance: item.name,
    generation: lines.at(-1)?.generation ?? 0,
    stream: 'stderr',
    text: message,
  };
  await inTransaction(systemContext(platform, ACTOR), async (context) => {
    await warn(context, service, verdict, { isEvent: true });
    const deploymentId = await lastDeployment(context, service);
    if (deploymentId !== null)
      await keepLastLines(
        context.db,
        { organizationId: service.organization_id },
        { serviceId: service.id, deploymentId },
        maskLines([...lines, told], (text) => text),
      ).execute();
  });
  return 'instance' as const;
}

async function lastDeployment({ db }: Context, service: MeasuredService): Promise<string | null> {
  const row = await db
    .selectFrom('deployment_service')
    .select('deployment_id')
    .where('organization_id', '=', service.organization_id)
    .where('service_id', '=', service.id)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.deployment_id ?? null;
}

async function endExecutions(parts: ActParts, service: ActedService, verdict: Verdict, options = {}) {
  const { platform, runtime } = parts;
  const { tasks } = service;
  if (tasks.length > 0)
    await inTime(parts, async (context) => {
      context.log(`Ending ${tasks.join(', ')} of ${service.name}: ${verdict.message}`);
      await runtime.removeTasks?.(identityOf(parts, service), tasks);
    });
  await inTransaction(systemContext(platform, ACTOR), (context) => warn(context, service, verdict, options));
  return tasks.length > 0 ? ('execution' as const) : null;
}

/** Requests a stop, unless a request for the service is under way: it may be the one that makes room. */
async function stop({ platform, stopService }: ActParts, service: MeasuredService, verdict: Verdict) {
  return inTransaction(systemContext(platform, ACTOR), async (context) => {
    const { db } = context;
    await db.selectFrom('environment').select('id').where('id', '=', service.environment_id).forUpdate().execute();
    await warn(context, service, verdict);
    const now = await db
      .selectFrom('service')
      .select('wanted')
      .where('organization_id', '=', service.organization_id)
      .where('id', '=', service.id)
      .where('deleting', '=', false)
      .executeTakeFirst();
    if (now?.wanted !== 'running' || service.locked_at !== null || (await isBusy(context, service))) return null;
    const place: DeploymentPlace = {
      organizationId: service.organization_id,
      projectId: service.project_id,
      projectName: service.project_name,
      environmentId: service.environment_id,
      environmentName: service.environment_name,
      clusterId: service.cluster_id,
      clusterLocked: false,
    };
    await stopService(context, place, service.id);
    return 'service' as const;
  });
}

async function isBusy({ db }: Context, service: MeasuredService): Promise<boolean> {
  const row = await db
    .selectFrom('deployment_service')
    .innerJoin('deployment', 'deployment.id', 'deployment_service.deployment_id')
    .select('deployment.id')
    .where('deployment_service.organization_id', '=', service.organization_id)
    .where('deployment_service.service_id', '=', service.id)
    .where('deployment.status', '<>', 'ENDED')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Shows a warning with the service's status; one that is new goes into the audit log and the program's own. */
async function warn(
  context: Context,
  service: MeasuredService,
  { code, item, message }: Verdict,
  { isEvent = false } = {},
): Promise<void> {
  const warning = { code, subject: item.name, message };
  const isNew = await setWarning(context.db, { organizationId: service.organization_id }, service.id, warning);
  if (!isNew && !isEvent) return;
  context.log.warn({ organizationId: service.organization_id, serviceId: service.id, code }, message);
  await audit(context, {
    organizationId: service.organization_id,
    type: 'MAINTENANCE',
    target: { type: service.kind as TargetType, id: service.id, name: service.name },
    project: { id: service.project_id, name: service.project_name },
    environment: { id: service.environment_id, name: service.environment_name },
    after: { code, message },
  });
}

const identityOf = ({ installationId }: ActParts, service: MeasuredService) => ({
  installation: installationId,
  organizationId: service.organization_id,
  projectId: service.project_id,
  environmentId: service.environment_id,
  serviceId: service.id,
});

/** Gives a runtime its time: one that hangs holds up nothing longer. */
function inTime<T>({ platform, signal, runtime }: ActParts, work: (context: RuntimeContext) => Promise<T>): Promise<T> {
  const late = (cause: unknown) =>
    new Error(`The runtime ${runtime.name} did not do it within ${REPLACE_SECONDS} s.`, { cause });
  return withDeadline(signal, { seconds: REPLACE_SECONDS, patience: () => 0, late }, (deadline) =>
    work({ signal: deadline.signal, log: (line) => platform.log.info(line) }),
  );
}
