import { internal, notFound } from '#kernel/errors.ts';
import { hasFact } from '#kernel/kinds.ts';
import type { Context } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import { LongList } from '#platform/http/long-list.ts';
import {
  executionIdOf,
  findExecution,
  listHistoryServices,
  readDeploymentLog,
  type DeploymentLine,
  type HistoryService,
} from '#deployments/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { idOfLine } from '#services/capabilities/service/logs/line-id.ts';

/** Function that turns a line into its view. `index` counts the lines of the execution from 0. */
type MakeView = (execution: string, services: HistoryService[]) => (line: DeploymentLine, index: number) => unknown;

/** Reads the log of the execution that `version` names, else of the environment's last. A long log is returned in parts. */
async function listLines(
  context: Context,
  environment: EnvironmentTarget,
  version: string | undefined,
  makeView: MakeView,
): Promise<unknown[] | LongList> {
  const found = await findExecution(context.db, environment, environment.id, version);
  if (!found && version !== undefined) throw notFound('Execution');
  if (!found) return [];
  const services = await listHistoryServices(context.db, environment, [found.id]);
  const view = makeView(executionIdOf(environment.id, found.number), services);
  let shown = 0;
  const read = async (db: Database, after: number) => {
    const part = await readDeploymentLog(db, environment, found.id, after);
    return { ...part, views: part.lines.map((line) => view(line, shown++)) };
  };
  let part = await read(context.db, 0);
  if (!part.hasMore) return part.views;
  return new LongList(part.views, async (db) => {
    if (!part.hasMore) return undefined;
    part = await read(db, part.last);
    if (part.views.length === 0) throw internal('The log was removed while it was read.');
    return part.views;
  });
}

/** Reads the lines of an execution with their stages and steps. */
export const listLogs = (context: Context, environment: EnvironmentTarget, version: string | undefined) =>
  listLines(context, environment, version, (execution, services) => toDeploymentLine(environment, execution, services));

/** Makes the view of the lines of an execution. */
export function toDeploymentLine(
  environment: EnvironmentTarget,
  execution: string | undefined,
  services: HistoryService[],
) {
  const byId = new Map(services.map((service) => [service.service_id, service]));
  return (line: DeploymentLine) => {
    const service = line.serviceId ? byId.get(line.serviceId) : undefined;
    return {
      type: line.error ? 'ERROR' : 'INFO',
      timestamp: line.at,
      details: {
        organization_id: environment.organizationId,
        cluster_id: environment.cluster_id,
        execution_id: execution,
        transmitter: service
          ? { id: service.service_id, name: service.name, type: service.kind }
          : { id: environment.id, name: environment.name, type: 'ENVIRONMENT' },
        stage: { step: line.step, id: service?.stage_id ?? null, name: service?.stage_name ?? null },
      },
      error: line.error ? { tag: line.step, user_log_message: line.text } : null,
      message: { safe_message: line.text },
    };
  };
}

/** Reads the lines of the last execution as plain records. */
export async function listLog(context: Context, environment: EnvironmentTarget) {
  const lines = await listLines(context, environment, undefined, toPlainLine(environment));
  return lines instanceof LongList ? lines : { results: lines };
}

const toPlainLine =
  (environment: EnvironmentTarget): MakeView =>
  (execution, services) => {
    const byId = new Map(services.map((service) => [service.service_id, service]));
    return (line, index) => {
      const service = line.serviceId ? byId.get(line.serviceId) : undefined;
      const type = service && hasFact(service.kind, 'logScope') ? service.kind : 'ENVIRONMENT';
      return {
        id: idOfLine(execution, String(index)),
        created_at: line.at,
        scope: service
          ? { type, name: service.name, id: service.service_id }
          : { type: 'ENVIRONMENT', name: environment.name, id: environment.id },
        state: line.error ? 'ERROR' : 'DEPLOYMENT_IN_PROGRESS',
        message: line.text,
        execution_id: execution,
      };
    };
  };
