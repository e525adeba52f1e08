import type { ServiceFacts } from '#deployments/executor/facts.ts';
import { identityIn, type PlannedRun } from '#deployments/executor/run-context.ts';
import type { Mask } from '#deployments/logs/writer.ts';
import type { DeployableKind, ExpandedVariables, FetchedChart, PlannedTask } from '#deployments/model/kind.ts';
import type { PlannedService, ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { Attempt, Handle, Runtime, RuntimeContext, Deployable, WorkloadIdentity } from '#runtimes/runtime.ts';

/** A service on its way through its steps, and what they hand to each other. */
export interface ServiceWork {
  run: PlannedRun;
  runtime: Runtime;
  planned: PlannedService;
  service: ServiceSnapshot;
  facts: ServiceFacts | undefined;
  /** Expanded once, when first needed. */
  variables: ExpandedVariables | undefined;
  mask: Mask;
  /** Last lines that the step under way has logged, masked, the oldest first. */
  output: string[];
  image: string | null;
  /** Values of the configuration that were sealed, opened when first needed. */
  opened: Record<string, string>;
  deployable: Deployable | undefined;
  /** Chart and values on this machine, once they were fetched. */
  fetched: FetchedChart | undefined;
  tasks: PlannedTask[] | undefined;
  handle: Handle | null;
  /** Custom domains that the workload was applied with; undefined if it was not, or if an earlier release of Quarterdeck applied it. */
  domains: string[] | undefined;
  /** Give back the service's place among those that build, or check out, at a time; undefined while it has none. */
  leave: Partial<Record<'builds' | 'checkouts', () => void>>;
}

/** Context that a step runs in: the runtime's, with the attempt. */
export interface StepContext extends RuntimeContext {
  attempt: Attempt;
}

export const kindOf = ({ run, service }: Pick<ServiceWork, 'run' | 'service'>): DeployableKind =>
  run.parts.kinds[service.kind]!;

export const identityOf = ({ run, service }: ServiceWork): WorkloadIdentity => identityIn(run, service.serviceId);
