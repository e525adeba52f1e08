import type { Execution, ServiceSnapshot } from '#deployments/index.ts';
import type { JobOutput, StateReading, TerraformAnswer } from '#kernel/parsing/formats.ts';
import { readFileOf } from '#kernel/parsing/index.ts';
import { readParts } from '#kernel/parsing/parts.ts';
import type { Context } from '#platform/context.ts';
import { recordOutputs } from '#services/capabilities/variables/index.ts';
import { isOwnUnlock } from '#services/kinds/terraform/deploy.ts';
import { keepsState } from '#services/kinds/terraform/run-files.ts';
import * as queries from '#services/kinds/terraform/queries.ts';
import type { TerraformSpec } from '#services/kinds/terraform/spec.ts';
import {
  currentState,
  endRun,
  forceUnlock,
  holderOfLock,
  readStateFile,
  type StateOwner,
} from '#services/terraform-state/index.ts';

/**
 * Records the results of a run: revokes its credential, stores its plan and the resources of the state, and makes variables of the outputs.
 */
export async function recordTerraform(
  context: Context,
  service: ServiceSnapshot<TerraformSpec>,
  execution: Execution,
): Promise<string[]> {
  const owner = { organizationId: execution.organizationId, serviceId: service.serviceId };
  if (isOwnUnlock(service)) {
    const lock = await forceUnlock(context, owner, null);
    return [lock ? `Released ${holderOfLock(lock)}.` : 'The state is not locked.'];
  }
  const lines: string[] = [];
  // The process is known to be gone: a lock that it has left can be released.
  const left = await endRun(context, owner, { generation: null, known: true });
  if (left) lines.push(`The run ended without releasing ${holderOfLock(left)}: it is released now.`);
  if (execution.failure !== null) lines.push(...(await whoLocks(context, owner)));
  const answer = await readAnswer(execution);
  if (answer?.tooLarge) lines.push('The plan or the state is larger than 1 MiB: it is not shown as data.');
  if (answer?.plan) await keepPlan(context, service, execution, answer.plan);
  const state = await stateOf(context, service, execution, answer);
  if (state) await queries.replaceResources(context.db, execution, service.serviceId, state);
  return [...lines, ...(await keepOutputs(context, service, execution, state))];
}

/** Tells who holds the lock: what Terraform logs about a refused lock describes its own request, not the holder. */
async function whoLocks(context: Context, owner: StateOwner): Promise<string[]> {
  const lock = (await currentState(context, owner))?.lock;
  if (!lock) return [];
  return [
    `The state is locked: ${holderOfLock(lock)}. Deploy with the action FORCE_UNLOCK to release it, once that one is gone.`,
  ];
}

/** Reads the answer of `run.sh`; null if it wrote none. */
async function readAnswer({ organizationId, outcomes, secrets }: Execution): Promise<TerraformAnswer | null> {
  const text = outcomes.at(-1)?.end.output ?? null;
  if (text === null) return null;
  return readFileOf(organizationId, 'terraform-answer', { name: 'The answer of the run', text }, { secrets });
}

async function keepPlan(context: Context, service: ServiceSnapshot<TerraformSpec>, execution: Execution, plan: string) {
  const scope = { organizationId: execution.organizationId };
  await queries.insertPlan(context.db, scope, {
    serviceId: service.serviceId,
    deploymentId: execution.deploymentId,
    applied: execution.action === 'DEPLOY' && execution.failure === null,
    commitId: execution.commitId,
    content: plan,
  });
  await queries.deleteOldPlans(context.db, scope, service.serviceId);
}

/** Returns the present state; null if it is unknown. A state that is kept here is read after a failure as well. */
async function stateOf(
  context: Context,
  service: ServiceSnapshot<TerraformSpec>,
  execution: Execution,
  answer: TerraformAnswer | null,
): Promise<StateReading | null> {
  if (!keepsState(service.spec.backend)) return answer?.state ?? null;
  const { organizationId, secrets } = execution;
  const content = (await currentState(context, { organizationId, serviceId: service.serviceId }))?.content;
  return content ? readStateFile(organizationId, content, secrets) : null;
}

interface StateOutput {
  name: string;
  value: string;
  sensitive: boolean;
}

/** Stores outputs as variables of the environment; deletes them after a destroy. */
async function keepOutputs(
  context: Context,
  service: ServiceSnapshot<TerraformSpec>,
  execution: Execution,
  state: StateReading | null,
): Promise<string[]> {
  const { action, failure } = execution;
  if (failure !== null || action === 'RUN') return [];
  const place = { ...execution, serviceId: service.serviceId };
  if (action !== 'DEPLOY') return recordOutputs(context, place, []);
  if (!state) return [];
  const lines: string[] = [];
  const outputs = new Map<string, JobOutput>();
  for (const output of await readParts<StateOutput>(state.outputs)) {
    const made = toOutput(output);
    const refusal = refusalOf(context, made, outputs.has(made.key));
    if (refusal) lines.push(`The output ${output.name} becomes no variable: ${refusal}.`);
    else outputs.set(made.key, made);
  }
  return [...lines, ...(await recordOutputs(context, place, [...outputs.values()]))];
}

/** Longest value of a variable (docs/contributing/rules.md 32). */
const MAX_VALUE = 65_536;

function refusalOf(context: Context, { key, value }: JobOutput, isTaken: boolean): string | undefined {
  if (isTaken) return `${key} is another output's already`;
  if (key.startsWith(context.settings.builtInVariablePrefix))
    return `${context.settings.builtInVariablePrefix} is the prefix of built-in ones`;
  if (Buffer.byteLength(value) > MAX_VALUE) return 'it is larger than 64 KiB';
  if (key.length > 255) return 'its name is longer than 255 characters';
  return undefined;
}

/** Converts an output. Names in Terraform may have characters that names of variables must not have. */
const toOutput = ({ name, value, sensitive }: StateOutput): JobOutput => ({
  key: name.replaceAll(/[^a-zA-Z0-9_]/g, '_').replace(/^(?=\d)/, '_'),
  value: value.toWellFormed().replaceAll('\0', ''),
  isSecret: sensitive,
  description: null,
  mountPath: null,
});
