import { hasFact } from '#kernel/kinds.ts';
import { AppError, badGateway, internal, invalidField, notFound } from '#kernel/errors.ts';
import type { Database } from '#platform/database/index.ts';
import { LongList } from '#platform/http/long-list.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { inSnapshot, type Context } from '#platform/context.ts';
import {
  executionIdOf,
  findExecution,
  listHistoryServices,
  readDeploymentLog,
  readLastLines,
  type DeploymentLine,
  type HistoryService,
} from '#deployments/index.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/index.ts';
import { readNewestLog } from '#services/capabilities/service/executions/index.ts';
import { idOfLine } from '#services/capabilities/service/logs/line-id.ts';
import {
  isSince,
  PreviousQuery,
  refuseInstances,
  selectKept,
  SelectionQuery,
  toLogOptions,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import { DeploymentLogLine, EnvironmentLogList, ServiceLogList } from '#services/capabilities/service/logs/schema.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { clusterOf, type ServiceTarget } from '#services/service/target.ts';
import type { Handle, LogLine } from '#runtimes/runtime.ts';

const TAIL_DEFAULT = 1000;

const follow = {
  follow: Type.Optional(
    Type.Boolean({
      description:
        'Refused: a log ends with its newest line; `GET /organization/{organizationId}/eventStream` sends new ones.',
    }),
  ),
};

/** Throws 400 for `follow`, and names the event stream in the message. Without this error the log would end in silence. */
function refuseFollow(query: { follow?: boolean }, organizationId: string): void {
  if (query.follow)
    throw invalidField(
      'follow',
      `must be false: a log ends with its newest line; GET /organization/${organizationId}/eventStream?types=log sends those of deployments as they come`,
    );
}

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

const listLogs = (context: Context, environment: EnvironmentTarget, version: string | undefined) =>
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

async function listLog(context: Context, environment: EnvironmentTarget) {
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

export const environmentLogRoutes: Route[] = [
  defineRoute({
    id: 'listEnvironmentLog',
    method: 'GET',
    path: '/environment/{environmentId}/log',
    tag: 'Environment Logs',
    summary: 'List the log of the last deployment of an environment, first form',
    description:
      'Answers the lines of the last deployment as plain records. GET …/logs answers them with their stages and steps.',
    target: environmentTarget,
    action: 'environment.read',
    answer: { status: 200, body: EnvironmentLogList },
    handler: (call) => listLog(call, call.target),
  }),
  defineRoute({
    id: 'listEnvironmentLogs',
    method: 'GET',
    path: '/environment/{environmentId}/logs',
    tag: 'Environment Logs',
    summary: 'List the log of a deployment of an environment: what was done, step by step',
    description:
      '`version` names an execution; without it the last one is answered. The answer is a bare array, oldest line first.',
    target: environmentTarget,
    action: 'environment.read',
    query: Type.Object({
      ...follow,
      version: Type.Optional(Type.String({ description: 'Execution id; the last execution without.' })),
    }),
    answer: { status: 200, body: Type.Array(DeploymentLogLine) },
    handler: (call) => {
      refuseFollow(call.query, call.target.organizationId);
      return listLogs(call, call.target, call.query.version);
    },
  }),
];

/** `GET /<kind>/{id}/log`: what the instances wrote, read from the runtime. */
export const serviceLogRoutes = (kind: Kind, needs: ServiceNeeds): Route[] => [
  defineRoute({
    id: `list${kind.tag}Log`,
    method: 'GET',
    path: `/${kind.path}/{${paramOf(kind)}}/log`,
    tag: `${kind.tag} Logs`,
    summary: `List the last lines that a service of kind ${kind.path} wrote, oldest first`,
    description:
      'Where nothing runs: up to 200 lines of the last instance that did not get ready. New lines as they come: `GET /organization/{organizationId}/eventStream`.',
    target: holderOf(kind).target,
    action: 'service.read',
    query: Type.Object({
      ...follow,
      tail: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Number of lines, 1000 without.' })),
      ...SelectionQuery,
      ...PreviousQuery,
    }),
    answer: { status: 200, body: ServiceLogList },
    errors: [502],
    transaction: false,
    handler: async (call) => {
      refuseFollow(call.query, call.target.organizationId);
      const tail = call.query.tail ?? TAIL_DEFAULT;
      // Kinds that run to an end write into the log of their execution.
      if (kind.capabilities?.executions) {
        refuseInstances(call.query);
        const isWanted = isSince(call.query);
        const lines = await inSnapshot(call, (inside) => readNewestLog(inside, call.target, tail));
        return { results: lines.filter((line) => isWanted(line.created_at)).map(toRunLog) };
      }
      return { results: (await readLines(call, needs, call.target, { ...call.query, tail })).map(toServiceLog) };
    },
  }),
];

async function readLines(
  call: Context & { signal: AbortSignal },
  needs: ServiceNeeds,
  service: ServiceTarget,
  { tail, ...selection }: Selection & { tail: number },
): Promise<LogLine[]> {
  const kept = async () => selectKept(await readLastLines(call.db, service, service.id), selection).slice(-tail);
  // Nothing runs: what the last instance wrote that did not get ready is all that there is.
  if (!service.handle) return kept();
  try {
    const runtime = await needs.runtimeOf(clusterOf(service));
    const lines: LogLine[] = [];
    const options = { ...toLogOptions(selection), tail, follow: false, signal: call.signal };
    for await (const line of runtime.logs(service.handle as Handle, options)) lines.push(line);
    return lines.length > 0 ? lines.slice(-tail) : await kept();
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw badGateway(`The log cannot be read from the cluster: ${(error as Error).message}`, error);
  }
}

const toServiceLog = (line: LogLine, index: number) => ({
  id: idOfLine(line.instance, line.at, line.text, String(index)),
  created_at: line.at,
  message: line.text,
  pod_name: line.instance,
  version: String(line.generation),
});

/** Returns a line of an execution. It has no pod name and no version: the task that wrote it is gone and belonged to no release. */
const toRunLog = (line: { id: string; created_at: string; message: string }) => ({
  ...line,
  pod_name: '',
  version: '',
});
