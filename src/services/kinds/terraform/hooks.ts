import type { KindHooks, ServiceSnapshot } from '#deployments/index.ts';
import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { MACHINE_RUNTIME, type WorkloadIdentity } from '#runtimes/runtime.ts';
import { isOwnUnlock, type Opened } from '#services/kinds/terraform/deploy.ts';
import { recordTerraform } from '#services/kinds/terraform/record.ts';
import { keepsState, type Backend, type StateAccess, type VariableValue } from '#services/kinds/terraform/run-files.ts';
import * as queries from '#services/kinds/terraform/queries.ts';
import { openTfVar, type TerraformSpec } from '#services/kinds/terraform/spec.ts';
import { choosePrograms, programName, type ProgramFinder } from '#services/kinds/terraform/versions.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';
import { beginRun, endRun, type StateServer } from '#services/terraform-state/index.ts';
import { isExpression, structuredVariables } from '#services/terraform-repository/index.ts';

/** Dependencies of Terraform runs on the process that starts them; app/ provides them. */
export interface TerraformNeeds {
  states: StateServer;
  programs: ProgramFinder;
  /** Returns the reader of modules for runs on a runtime; null if its runs are only pretended. */
  repositoriesFor(runtime: string): RepositoryReader | null;
  /** Returns an address of this machine that runs in the environment's cluster can reach. */
  hostAddress(cluster: { id: string; runtime: string }, identity: WorkloadIdentity): Promise<string>;
}

const NOTHING: { values: Record<string, string>; secrets: string[] } = { values: {}, secrets: [] };

/** Steps of Terraform services that need the database or the machine. */
export const terraformHooks = (needs: TerraformNeeds): KindHooks<TerraformSpec> => ({
  open: async (context, service, identity) => {
    if (isOwnUnlock(service)) return NOTHING;
    const { spec } = service;
    const cluster = await queries.findRuntime(context.db, identity, identity.environmentId);
    if (!cluster) throw new Error('The environment has no cluster any more.');
    const released = (await queries.findReleasedSpec(context.db, identity, service.serviceId)) as
      TerraformSpec | undefined;
    const previousBackend = service.event === 'MIGRATE_STATE' ? previousOf(spec, released) : null;
    const variables = await variablesOf(context, needs.repositoriesFor(cluster.runtime), service, identity);
    const keeps = keepsState(spec.backend) || (previousBackend !== null && keepsState(previousBackend));
    const access = keeps ? await letIn(context, needs, service, identity, cluster) : null;
    const opened: Opened = {
      programs: await programsOf(needs, spec, cluster.runtime),
      access,
      variables,
      previousBackend,
      wasReleased: released !== undefined,
    };
    const secret = variables.filter(({ key }) => spec.tf_vars.some((one) => one.key === key && one.secret));
    return {
      values: { run: JSON.stringify(opened) },
      secrets: [...secret.map(({ value }) => value), ...(access ? [access.password] : [])],
    };
  },
  record: recordTerraform,
  // Terraform releases its lock when it is asked to end; the next run reports a lock that is left, which is released by hand.
  abandon: async (context, service, { organizationId, generation }) => {
    await endRun(context, { organizationId, serviceId: service.serviceId }, { generation, known: false });
  },
});

/** Returns the backend that the state is migrated from. Throws an error for people if there is none, or no other. */
function previousOf(spec: TerraformSpec, released: TerraformSpec | undefined): Backend {
  if (!released) throw new Error('There is no state to migrate: the service was never applied with success.');
  if (JSON.stringify(released.backend) === JSON.stringify(spec.backend))
    throw new Error('There is nothing to migrate: the backend is that of the last release. Set another one first.');
  return released.backend;
}

async function programsOf({ programs }: TerraformNeeds, spec: TerraformSpec, runtime: string): Promise<string[]> {
  const { explicit_version: version, read_from_terraform_block: moduleChooses } = spec.provider_version;
  if (runtime !== MACHINE_RUNTIME) return [programName(spec.engine)];
  return choosePrograms(await programs(), { engine: spec.engine, version, moduleChooses });
}

/** Issues a credential for this run, and returns it with the URL of the state. */
async function letIn(
  context: Context,
  { states, hostAddress }: TerraformNeeds,
  service: ServiceSnapshot<TerraformSpec>,
  identity: WorkloadIdentity,
  cluster: { id: string; runtime: string },
): Promise<StateAccess> {
  const { timeout_sec } = service.spec;
  const owner = { organizationId: identity.organizationId, serviceId: service.serviceId };
  const longest = (timeout_sec || 86_400) + Number(service.advancedSettings['build.timeout_max_sec']);
  const credential = await beginRun(context, owner, { generation: identity.generation, timeoutSeconds: longest });
  return { url: await states.urlAt(await hostAddress(cluster, identity), owner), ...credential };
}

/**
 * Returns the values of the service's own variables. A text that looks like a list or a map may be plain text: the module's declarations
 * decide, and are read only in this case.
 */
async function variablesOf(
  context: Context,
  repositories: RepositoryReader | null,
  service: ServiceSnapshot<TerraformSpec>,
  { organizationId }: WorkloadIdentity,
): Promise<VariableValue[]> {
  const { spec } = service;
  const values = await Promise.all(
    spec.tf_vars.map(async (one) => ({ key: one.key, value: await openTfVar(context, organizationId, one) })),
  );
  const expressions = new Set<string>();
  for (const { key, value } of values) if (await isExpression(organizationId, value)) expressions.add(key);
  const structured =
    expressions.size > 0 && repositories
      ? await structuredVariables(repositories, organizationId, spec.git_repository)
      : new Set();
  return values.map(({ key, value }) => {
    const wanted = structured.has(key);
    if (wanted && !expressions.has(key))
      throw invalidField(`tf_vars.${key}`, 'must be a value of Terraform\'s language, such as ["a"] or { a = 1 }');
    return { key, value, isExpression: wanted };
  });
}
