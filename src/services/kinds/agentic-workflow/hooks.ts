import { maskOf } from '#kernel/secrets-mask.ts';
import { newId } from '#kernel/ids.ts';
import { ParsingError, readShapeOf } from '#kernel/parsing/index.ts';
import type { Execution, KindHooks, ServiceSnapshot } from '#deployments/index.ts';
import type { Context } from '#platform/context.ts';
import { findMcpServer } from '#resources/mcp-server/index.ts';
import type { Opened } from '#services/kinds/agentic-workflow/deploy.ts';
import { insertOutput } from '#services/kinds/agentic-workflow/queries.ts';
import { apiKeyPlace, openSealed, type AgenticWorkflowSpec } from '#services/kinds/agentic-workflow/spec.ts';

const HOUR_SECONDS = 3600;

const NOTHING: { values: Record<string, string>; secrets: string[] } = { values: {}, secrets: [] };

/** Steps of agentic workflows that need the database: keys and MCP servers before a run, outputs after it. */
export const workflowHooks: KindHooks<AgenticWorkflowSpec> = {
  open: async (context, service, { organizationId }) => {
    const { spec } = service;
    if (!spec.run) return NOTHING;
    const { api_key: sealed } = spec.model;
    const key = sealed ? await openSealed(context, organizationId, apiKeyPlace(service.serviceId), sealed) : '';
    const { mcp, secrets } = await mcpOf(context, organizationId, spec);
    const opened: Opened = {
      environment: modelEnvironment(spec, key, context.settings.agentModelUrl),
      mcp,
      modelUrl: context.settings.agentModelUrl,
      allowedPrivateAddresses: context.settings.allowedPrivateAddresses,
      timeoutSeconds: context.settings.agenticRunHours * HOUR_SECONDS,
    };
    return { values: { run: JSON.stringify(opened) }, secrets: [...(key ? [key] : []), ...secrets] };
  },
  record: recordOutputs,
};

/** Returns the variables from which the program reads its model's key and address. */
function modelEnvironment({ model }: AgenticWorkflowSpec, key: string, url: string): Record<string, string> {
  const names =
    model.type === 'BEDROCK'
      ? { key: 'AWS_BEARER_TOKEN_BEDROCK', url: 'ANTHROPIC_BEDROCK_BASE_URL' }
      : { key: 'ANTHROPIC_API_KEY', url: 'ANTHROPIC_BASE_URL' };
  return {
    ...(model.type === 'BEDROCK' ? { CLAUDE_CODE_USE_BEDROCK: '1' } : {}),
    ...(key ? { [names.key]: key } : {}),
    ...(url ? { [names.url]: url } : {}),
  };
}

/** Merges the workflow's own MCP configuration with the servers that it names; the named servers win. */
async function mcpOf(context: Context, organizationId: string, spec: AgenticWorkflowSpec) {
  const own = spec.mcp ? (JSON.parse(spec.mcp) as { mcpServers?: object }) : {};
  const servers: Record<string, object> = {};
  const secrets: string[] = [];
  for (const id of spec.mcp_server_ids) {
    const server = await findMcpServer(context, { organizationId }, id);
    if (!server) throw new Error(`The MCP server ${id} is gone: take it out of the workflow.`);
    servers[server.name] = { type: 'http', url: server.url, headers: server.headers };
    secrets.push(...Object.values(server.headers));
  }
  return { mcp: JSON.stringify({ ...own, mcpServers: { ...own.mcpServers, ...servers } }), secrets };
}

/** Queues a message to each output's URL: the agent's answer without secrets, or the failure. Returns lines for the log. */
async function recordOutputs(
  context: Context,
  service: ServiceSnapshot<AgenticWorkflowSpec>,
  execution: Execution,
): Promise<string[]> {
  const { spec } = service;
  const { organizationId, environmentId, deploymentId, failure } = execution;
  const given = await answerOf(execution);
  const answer = given === null ? null : maskOf(execution.secrets)(given);
  const posted = spec.outputs.filter(({ url }) => url !== null);
  for (const { name, url, headers } of posted) {
    const body = {
      workflow: service.name,
      output: name,
      environment_id: environmentId,
      deployment_request_id: deploymentId,
      success: failure === null,
      error: failure,
      answer,
    };
    await insertOutput(context, organizationId, newId(), { url: url!, headers, body: JSON.stringify(body) });
  }
  return posted.map(({ name }) => `The answer goes to ${name}.`);
}

/** Returns the `result` of the program's last line; an output that is not such an object is returned whole. */
async function answerOf({ organizationId, outcomes }: Execution): Promise<string | null> {
  const text = outcomes.at(-1)?.end.output ?? null;
  if (text === null) return null;
  const answer = await readShapeOf(organizationId, { name: 'The output', text }, { result: 'text' }).catch(unlessBusy);
  return answer?.result ?? text;
}

const unlessBusy = (error: unknown): null => {
  if (error instanceof ParsingError && error.kind !== 'busy') return null;
  throw error;
};
