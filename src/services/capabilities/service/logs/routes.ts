import { AppError, badGateway } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { inSnapshot, type Context } from '#platform/context.ts';
import { readLastLines } from '#deployments/index.ts';
import { readNewestLog } from '#services/capabilities/service/executions/index.ts';
import { FollowQuery, refuseFollow } from '#services/capabilities/service/logs/follow.ts';
import { idOfLine } from '#services/capabilities/service/logs/line-id.ts';
import { ServiceLogList } from '#services/capabilities/service/logs/schema.ts';
import {
  hasText,
  isChosen,
  PreviousQuery,
  refuseInstances,
  selectKept,
  SEARCHED,
  SelectionQuery,
  toLogOptions,
  type Selection,
} from '#services/capabilities/service/logs/selection.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { clusterOf, type ServiceTarget } from '#services/service/target.ts';
import type { Handle, LogLine } from '#runtimes/runtime.ts';

const TAIL_DEFAULT = 1000;

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
      ...FollowQuery,
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
        const isWanted = isChosen(call.query);
        const most = mostOf(call.query, tail);
        const lines = await inSnapshot(call, (inside) => readNewestLog(inside, call.target, most));
        const wanted = lines.filter((line) => isWanted(line.created_at, line.message));
        return { results: wanted.slice(-tail).map(toRunLog) };
      }
      return { results: (await readLines(call, needs, call.target, { ...call.query, tail })).map(toServiceLog) };
    },
  }),
];

/** Returns the number of newest lines to read: those that are searched where only some are wanted. */
const mostOf = ({ text }: Selection, tail: number): number => (text === undefined ? tail : SEARCHED);

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
    const options = { ...toLogOptions(selection), follow: false, signal: call.signal };
    const isFound = hasText(selection);
    let isEmpty = true;
    for await (const line of runtime.logs(service.handle as Handle, { ...options, tail: mostOf(selection, tail) })) {
      isEmpty = false;
      if (isFound(line.text)) lines.push(line);
    }
    return isEmpty ? await kept() : lines.slice(-tail);
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
