import { Webhook as Signer } from 'standardwebhooks';
import { AppError, badRequest, conflict, forbidden, notFound, unauthenticated } from '#kernel/errors.ts';
import { newId, shortId } from '#kernel/ids.ts';
import { permits } from '#platform/access/principal.ts';
import { findMakerPrincipal } from '#platform/access/makers.ts';
import { audit } from '#platform/events/audit.ts';
import { defineRoute, type Call, type Route } from '#platform/http/route.ts';
import { DateTime, named, Type, Uuid } from '#platform/http/schema.ts';
import {
  DEFAULT_STAGES,
  environmentTarget,
  findEnvironmentById,
  makeEnvironment,
  placeOf,
  toEnvironmentView,
} from '#resources/environment/index.ts';
import { projectTarget } from '#resources/project/index.ts';
import { MACHINE_RUNTIME } from '#runtimes/runtime.ts';
import { placeOfEnvironment, submit } from '#services/capabilities/service/actions/request.ts';
import { copyServices, placeIn, type CopyRight } from '#services/capabilities/service/clone/index.ts';
import type { Kind } from '#services/kind.ts';
import * as queries from '#services/kinds/agentic-workflow/queries.ts';
import {
  isListed,
  openSealed,
  webhookSecretPlace,
  type AgenticWorkflowSpec,
} from '#services/kinds/agentic-workflow/spec.ts';
import { forkOf, forkServiceRefusal } from '#services/service/forks.ts';
import { findServiceById, lockService } from '#services/service/queries.ts';
import type { ServiceRow } from '#services/service/queries.ts';

/** Maximum number of runs that the webhook of a workflow starts within an hour. */
const RUNS_PER_HOUR = 60;
const LONGEST_PAYLOAD = 65_536;

type WebhookCall = Call<unknown, { slug: string }, object, string>;

const AgenticRun = named(
  'AgenticRun',
  Type.Object({
    id: Type.String({ description: 'The `webhook-id` of the call; a generated one if the call had none.' }),
    environment_id: Uuid,
    agentic_workflow_id: Type.String({ format: 'uuid', description: 'The copy of the workflow that runs there.' }),
    created_at: DateTime,
  }),
);

/** Route of a workflow's webhook. The address is the credential, and so is the signature if the workflow has a secret. */
export const workflowWebhookRoutes = (kind: Kind): Route[] => [
  defineRoute({
    id: 'callAgenticWorkflowWebhook',
    method: 'POST',
    path: '/agenticWorkflowWebhook/{slug}',
    tag: 'Agentic Workflows',
    summary: 'Run an agentic workflow',
    description:
      'Signed as Standard Webhooks has it where the workflow has a `webhook_secret`. A call that comes again with its `webhook-id` starts nothing.',
    action: 'public',
    body: Type.String({ maxLength: LONGEST_PAYLOAD }),
    bodyContentType: 'application/json',
    answer: { status: 202, body: AgenticRun },
    errors: [403, 404, 409],
    handler: (call) => takeCall(call as unknown as WebhookCall, kind),
  }),
];

async function takeCall(call: WebhookCall, kind: Kind) {
  const found = await queries.findWorkflowBySlug(call.db, call.params.slug);
  if (!found) throw notFound('Webhook');
  const scope = { organizationId: found.organization_id };
  // The lock serializes the calls of a workflow: a repeated call finds the run of the first.
  await lockService(call.db, [scope.organizationId], found.id);
  const workflow = await findServiceById(call.db, [scope.organizationId], found.id);
  if (!workflow) throw notFound('Webhook');
  await letIn(call, workflow);
  requireObject(call.body);
  const callId = headerOf(call, 'webhook-id') ?? newId();
  if (callId.length > 255) throw new AppError('bad_request', 'webhook-id: must have at most 255 characters.');
  const before = await queries.findRun(call.db, scope, workflow.id, callId);
  if (before) return viewOf(callId, before);
  if ((await queries.countRuns(call.db, scope, workflow.id)) >= RUNS_PER_HOUR)
    throw new AppError('rate_limited', `A workflow is run ${RUNS_PER_HOUR} times an hour at most: try again later.`, {
      headers: { 'Retry-After': '600' },
    });
  return startRun(call, kind, workflow, callId);
}

/** Throws 400 unless the body is a JSON object. The body stays text, which is what was signed. */
function requireObject(text: string): void {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  } catch {
    // The error is thrown below.
  }
  throw badRequest('The body must be a JSON object.');
}

const headerOf = ({ headers }: WebhookCall, name: string): string | undefined => [headers[name]].flat()[0] || undefined;

/** Refuses callers by address, then by signature, whose time must be within five minutes of now. */
async function letIn(call: WebhookCall, workflow: ServiceRow): Promise<void> {
  const spec = workflow.spec as AgenticWorkflowSpec;
  if (spec.webhook_ip_allowlist.length > 0 && !isListed(spec.webhook_ip_allowlist, call.peer ?? ''))
    throw forbidden('This address may not call the webhook: it is not in webhook_ip_allowlist.');
  if (spec.webhook_secret !== null) {
    const place = webhookSecretPlace(workflow.id);
    const secret = await openSealed(call, workflow.organization_id, place, spec.webhook_secret);
    const signed = Object.fromEntries(
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, headerOf(call, name) ?? '']),
    );
    try {
      // Compares in constant time.
      new Signer(secret).verify(call.body, signed);
    } catch {
      throw unauthenticated(
        'The signature is missing or wrong, or its time is not now: sign as Standard Webhooks has it.',
      );
    }
  }
  if (workflow.deleting || workflow.environment_deleting) throw conflict(`${workflow.name} is being deleted.`);
  if (!spec.enabled) throw conflict(`${workflow.name} is switched off.`);
}

/** Throws 409 for a workflow in an environment that runs the code of a fork: a run would bring that code to the rights of an agent. */
async function refuseFork(call: WebhookCall, workflow: ServiceRow): Promise<void> {
  const environment = await findEnvironmentById(call.db, [workflow.organization_id], workflow.environment_id);
  const refusal = environment && forkOf(environment) && forkServiceRefusal(workflow);
  if (refusal) throw conflict(refusal);
}

/** Creates a run: a throwaway environment with a copy of the workflow, and its deployment. */
async function startRun(call: WebhookCall, kind: Kind, workflow: ServiceRow, callId: string) {
  const { agentImage, agenticRunHours } = call.settings;
  const isOnMachine = workflow.cluster_runtime === MACHINE_RUNTIME;
  if (agentImage === '' && !isOnMachine)
    throw conflict('This installation has no agent: its settings name none (QUARTERDECK_AGENT_IMAGE).');
  const scope = { organizationId: workflow.organization_id };
  await refuseFork(call, workflow);
  const require = await rightOfMaker(call, workflow);
  const context = {
    ...call,
    actor: { userId: null, name: `Webhook of ${workflow.name}`, origin: 'API' as const, userAgent: null },
  };
  const project = (await projectTarget.find(call.db, workflow.project_id, [scope.organizationId], { lock: false }))!;
  const stages = DEFAULT_STAGES.map((name) => ({ id: newId(), name, description: '' }));
  const [runId, serviceId] = [newId(), newId()];
  const made = await makeEnvironment(
    context,
    project,
    {
      name: `${workflow.name.slice(0, 80)} run ${shortId(runId)}`,
      // The copy has the workflow's secrets: the same mode keeps them from the same people.
      mode: workflow.environment_mode,
      cluster_id: workflow.cluster_id,
    },
    stages,
  );
  await queries.expireEnvironment(call.db, scope, made.id, agenticRunHours);
  const environment = (await environmentTarget.find(call.db, made.id, [scope.organizationId], { lock: true }))!;
  const run = { image: isOnMachine ? null : agentImage, payload: call.body };
  const row = { ...workflow, spec: { ...(workflow.spec as AgenticWorkflowSpec), enabled: false, run } };
  const stageId = stages.find(({ name }) => name === kind.defaultStage)!.id;
  await copyServices(context, require, {
    from: {
      ...scope,
      projectId: workflow.project_id,
      environmentId: workflow.environment_id,
      mode: workflow.environment_mode,
    },
    to: placeIn(environment),
    services: [{ kind, row, id: serviceId, name: workflow.name, stageId }],
    whole: true,
  });
  await audit(context, { ...scope, type: 'CREATE', ...placeOf(environment), after: toEnvironmentView(environment) });
  await submit(context, placeOfEnvironment(environment), 'DEPLOY', [serviceId], {});
  const ids = { environment_id: environment.id, service_id: serviceId };
  await queries.insertRun(call.db, {
    id: runId,
    organization_id: scope.organizationId,
    workflow_id: workflow.id,
    call_id: callId,
    ...ids,
  });
  return viewOf(callId, { ...ids, created_at: environment.created_at });
}

/**
 * Returns the check of a run's permissions: those that the last editor of the workflow has now, with the token of that edit. A call from
 * outside adds no permission (docs/decisions/0044-a-webhook-does-what-its-token-may.md).
 */
async function rightOfMaker(call: WebhookCall, workflow: ServiceRow): Promise<CopyRight> {
  const scope = { organizationId: workflow.organization_id };
  const { last_updated_by: userId, last_updated_with: tokenId } = workflow;
  const maker = await findMakerPrincipal(call, scope, { userId, tokenId });
  return (action, at) => {
    if (!maker || !permits(maker, action, at))
      throw forbidden(
        `Whoever saved ${workflow.name} last has no permission ${action} in its environment any more: somebody who has it must save the workflow again.`,
      );
  };
}

const viewOf = (id: string, run: { environment_id: string; service_id: string; created_at: Date }) => ({
  id,
  environment_id: run.environment_id,
  agentic_workflow_id: run.service_id,
  created_at: run.created_at.toISOString(),
});
