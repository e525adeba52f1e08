import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, Type } from '#platform/http/schema.ts';
import { listExecutions } from '#deployments/index.ts';
import { CleanFailed, ServiceRun, ServiceRunLog } from '#services/capabilities/service/executions/schema.ts';
import { cleanJob, readLog, toExecutionView } from '#services/capabilities/service/executions/service.ts';
import { holderOf, paramOf, type Kind } from '#services/kind.ts';

const TAIL_DEFAULT = 1000;
/** Executions per page without `page_size`. A schedule makes half a million in a year. */
const PAGE_DEFAULT = 20;

/** Makes the routes that list the executions of a kind with their logs, and that remove what failed executions left. */
export function executionRoutes(kind: Kind): Route[] {
  if (!kind.capabilities?.executions) return [];
  const { target } = holderOf(kind);
  const one = `/${kind.path}/{${paramOf(kind)}}`;
  return [
    defineRoute({
      id: `list${kind.tag}Execution`,
      method: 'GET',
      path: `${one}/execution`,
      tag: `${kind.tag} Executions`,
      summary: `List what a service of kind ${kind.path} ran, newest first`,
      description: `Without page and page_size the newest ${PAGE_DEFAULT} are answered.`,
      target,
      action: 'service.read',
      query: PageQuery,
      answer: { status: 200, body: ListOf(ServiceRun) },
      handler: (call) => {
        const rows = listExecutions(call.db, call.target, call.target.id);
        return fetchPage(call.db, rows as never, { page: 1, page_size: PAGE_DEFAULT, ...call.query }, toExecutionView);
      },
    }),
    defineRoute({
      id: `get${kind.tag}ExecutionLog`,
      method: 'GET',
      path: `${one}/execution/{executionId}/log`,
      tag: `${kind.tag} Executions`,
      summary: `List the last lines that a run of a service of kind ${kind.path} wrote, oldest first`,
      description: `Answers the lines of one run of the ${kind.path}. 404 for a run that it never had or that was cleaned away.`,
      target,
      action: 'service.read',
      query: Type.Object({
        tail: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 10_000, description: 'Number of lines, 1000 without.' }),
        ),
      }),
      answer: { status: 200, body: ServiceRunLog },
      handler: async (call) => {
        const { executionId } = call.params as Record<string, string>;
        return { results: await readLog(call, call.target, executionId!, call.query.tail ?? TAIL_DEFAULT) };
      },
    }),
    defineRoute({
      id: `cleanFailed${kind.tag}`,
      method: 'POST',
      path: `${one}/cleanFailed${kind.tag}`,
      tag: `${kind.tag} Actions`,
      summary: 'Clean away what failed runs left: their records, and what is left of them on the cluster',
      description: 'Answers the names of what is removed; the worker that reaches the cluster does it.',
      target,
      action: 'service.deploy',
      answer: { status: 200, body: CleanFailed },
      handler: (call) => cleanJob(call, call.target),
    }),
  ];
}
