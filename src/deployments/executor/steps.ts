import { systemContext } from '#platform/context.ts';
import { buildImage } from '#deployments/executor/build-image.ts';
import { fetchChart } from '#deployments/executor/charts.ts';
import { checkout } from '#deployments/executor/checkouts.ts';
import { again } from '#deployments/executor/fenced-write.ts';
import { requireDisk } from '#deployments/executor/disk.ts';
import { followOutside, goesOn } from '#deployments/executor/following.ts';
import { sourcesOf } from '#deployments/executor/run-context.ts';
import { identityOf, kindOf, type ServiceWork, type StepContext } from '#deployments/executor/service-work.ts';
import { runTasks } from '#deployments/executor/tasks.ts';
import type { PlannedTask, WorkloadOptions } from '#deployments/model/kind.ts';
import { outputPathOf } from '#deployments/model/output-path.ts';
import type { StepName } from '#deployments/model/snapshot.ts';
import { publishedPorts } from '#runtimes/runtime.ts';
import type {
  ChartSpec,
  Deployable,
  Handle,
  RegistryAccess,
  RuntimeContext,
  TaskSpec,
  WorkloadSpec,
} from '#runtimes/runtime.ts';

export interface Step {
  /** Phase of the service while the step runs. */
  phase: 'build' | 'apply' | 'execute';
  /** True if something may exist outside once the step has begun. */
  applies?: boolean;
  /** True if the step only waits for its turn: nothing is expected to show progress then. */
  waits?: boolean;
  /** Takes what the step would wait for, if it is free: the step is recorded with the next one then, and not run. */
  passes?(work: ServiceWork): boolean;
  /** Waits for what the step needs, before all else, however long that takes. */
  await?(work: ServiceWork): Promise<void>;
  /** Checks that need nothing outside, before the step begins. */
  prepare?(work: ServiceWork): Promise<void>;
  run(work: ServiceWork, context: StepContext): Promise<Record<string, unknown>>;
  /** Takes over the output, of this attempt or of an earlier one. */
  take?(work: ServiceWork, output: unknown): void;
}

const clone: Step = {
  phase: 'build',
  await: (work) => takePlaceAmong('checkouts', 'GIT_CLONE', work),
  run: async (work, context) => {
    try {
      await requireDisk(work);
      if (kindOf(work).chart) await fetchChart(work, context);
      else await checkout(work, context);
      return {};
    } finally {
      work.leave.checkouts?.();
    }
  },
};

/** Waits for a place among the builds: the others may take longer than any step may without progress. */
const buildQueueing: Step = {
  phase: 'build',
  waits: true,
  passes: (work) => {
    work.leave.builds ??= work.run.options.builds.takeFree(work.run.scope.organizationId);
    return work.leave.builds !== undefined;
  },
  run: async (work) => {
    await takePlaceAmong('builds', 'BUILD_QUEUEING', work);
    return {};
  },
};

const WAITING = {
  builds: 'Waiting for another build to end: QUARTERDECK_BUILD_SLOTS run at a time, of each organization in turn.',
  checkouts:
    'Waiting for another checkout to end: QUARTERDECK_CHECKOUT_SLOTS run at a time, of each organization in turn.',
};

/** Waits until the service may build, or check its repository out. */
async function takePlaceAmong(places: keyof typeof WAITING, step: StepName, work: ServiceWork): Promise<void> {
  const { run, service, leave } = work;
  const { organizationId } = run.scope;
  leave[places] ??= run.options[places].takeFree(organizationId);
  if (leave[places]) return;
  run.log.write({ serviceId: service.serviceId, step, text: WAITING[places] });
  leave[places] = await run.options[places].take(organizationId, run.signal);
}

const build: Step = {
  phase: 'build',
  // An attempt that takes over has no place yet, though the one before it waited for its own.
  await: (work) => takePlaceAmong('builds', 'BUILD', work),
  prepare: expand,
  run: async (work, context) => {
    try {
      await requireDisk(work);
      return await buildImage(work, context);
    } finally {
      work.leave.builds?.();
    }
  },
  take: (work, output: { image: string }) => {
    work.image = output.image;
  },
};

/** Step that applies, stops, restarts or removes the workload, by the deployment's action. */
const deployment: Step = {
  phase: 'apply',
  applies: true,
  prepare: async (work) => {
    if (work.run.snapshot.action !== 'DEPLOY' || !kindOf(work).deployable) return;
    await expand(work);
    work.deployable = await deployableOf(work);
  },
  run: async (work, context) => ({ handle: await applyAction(work, context), domains: work.domains }),
  take: (work, output: { handle: Handle | null; domains?: string[] }) => {
    work.handle = output.handle;
    work.domains = output.domains;
  },
};

/** Step that runs commands which end by themselves: events of jobs, commands of Terraform. */
const executing: Step = {
  phase: 'execute',
  applies: true,
  prepare: async (work) => {
    await expand(work);
    if (kindOf(work).chart) work.deployable = await deployableOf(work);
    else work.tasks = await tasksOf(work);
  },
  run: (work, context) => (kindOf(work).chart ? diffChart(work, context) : runTasks(work, context)),
};

const refused = (name: StepName): Step => ({
  phase: 'apply',
  prepare: () => Promise.reject(new Error(`This release has no step ${name}.`)),
  run: () => Promise.resolve({}),
});

/** Implementations of the steps, by name. */
export const STEPS: Record<StepName, Step> = {
  GIT_CLONE: clone,
  BUILD: build,
  DEPLOYMENT: deployment,
  REGISTRY_CREATE_REPOSITORY: refused('REGISTRY_CREATE_REPOSITORY'),
  BUILD_QUEUEING: buildQueueing,
  MIRROR_IMAGE: refused('MIRROR_IMAGE'),
  DEPLOYMENT_QUEUEING: refused('DEPLOYMENT_QUEUEING'),
  ROUTER_DEPLOYMENT: refused('ROUTER_DEPLOYMENT'),
  EXECUTING: executing,
};

/** Expands a service's variables once, with the outputs that earlier stages recorded (docs/contributing/engine.md). */
async function expand(work: ServiceWork): Promise<void> {
  if (work.variables) return;
  const { run, service } = work;
  const { organizationId } = run.scope;
  const { environmentId, shared = [], rollbackTo } = run.snapshot;
  const isRollback = rollbackTo !== undefined;
  const { deployment: row, names } = run.claim;
  const { isFork } = names;
  const deployment = { id: row.id, environmentId, isFork, shared, isRollback, signal: run.signal };
  const context = systemContext({ ...run.parts.platform, db: run.db });
  const { warnings, ...variables } = await again(() => run.parts.expand(context, organizationId, service, deployment));
  const opened = await again(async () => run.parts.hooks[service.kind]?.open?.(context, service, identityOf(work)));
  work.opened = opened?.values ?? {};
  variables.secrets = [...new Set([...variables.secrets, ...(opened?.secrets ?? [])])];
  work.mask = run.parts.makeMask(variables.secrets);
  for (const warning of warnings)
    run.log.write({ serviceId: service.serviceId, step: 'DEPLOYMENT', text: work.mask(warning) });
  work.variables = variables;
}

/** Returns the workload or chart to apply; throws if the runtime refuses it. */
async function deployableOf(work: ServiceWork): Promise<Deployable> {
  const kind = kindOf(work);
  if (!work.image && !kind.chart) throw new Error(`${work.service.name} has no image to deploy.`);
  const options = await optionsOf(work);
  work.domains = await routedDomainsOf(work);
  const service = { ...work.service, customDomains: work.domains };
  const made = await kind.deployable!(service, identityOf(work), work.image ?? '', work.variables!, options);
  refuse(work, made);
  return made;
}

async function routedDomainsOf({ run, service, mask }: ServiceWork): Promise<string[]> {
  const context = systemContext({ ...run.parts.platform, db: run.db });
  const { organizationId } = run.scope;
  const { domains, warnings } = await again(() => run.parts.routeDomains(context, organizationId, service));
  for (const warning of warnings)
    run.log.write({ serviceId: service.serviceId, step: 'DEPLOYMENT', text: mask(warning) });
  return domains;
}

/** Returns whether a deployed service gets an image that is here: that hardly takes disk, and may be what frees some. */
async function isKnownHere({ runtime, facts }: ServiceWork, workload: WorkloadSpec) {
  // Nothing of what it deploys lies on this machine.
  if (runtime.registryOf) return true;
  if (!facts?.handle) return false;
  return (await runtime.hasImage?.(workload.identity, workload.image)) ?? false;
}

/** Applies what the service deploys. */
async function applyDeployable(work: ServiceWork, context: RuntimeContext) {
  const { deployable, facts } = work;
  switch (deployable?.type) {
    case undefined:
      return facts?.handle ?? null;
    case 'workload':
      return applyWorkload(work, deployable, context);
    case 'helm':
      return work.runtime.submit(await chartOf(work, context), context);
  }
}

/** Returns the chart with its files, which are fetched where this attempt does not have them. */
async function chartOf(work: ServiceWork, context: RuntimeContext): Promise<ChartSpec> {
  await fetchChart(work, context);
  const made = await deployableOf(work);
  if (made.type !== 'helm') throw new Error(`${work.service.name} is no chart.`);
  for (const warning of made.warnings) context.log(warning);
  work.deployable = made;
  return made;
}

/** Writes what a deployment of the chart would change to the log. */
async function diffChart(work: ServiceWork, context: StepContext): Promise<Record<string, unknown>> {
  const { runtime } = work;
  if (!runtime.diff) throw new Error(`The runtime ${runtime.name} runs no charts: use a Kubernetes cluster.`);
  await runtime.diff(await chartOf(work, context), context);
  return {};
}

/** Applies the workload, once the service has the ports of the machine that it publishes. */
async function applyWorkload(work: ServiceWork, workload: WorkloadSpec, context: RuntimeContext) {
  const { run, runtime } = work;
  if (!(await isKnownHere(work, workload))) await requireDisk({ run });
  const ports = publishedPorts(workload.ports).map(({ protocol, externalPort: port }) => ({ protocol, port }));
  if (ports.length > 0) await again(() => run.parts.checkPublished(workload.identity, ports));
  return runtime.submit(workload, context);
}

/** Waits until the cluster has rolled a release out by itself. A worker that leaves lets the rollout go on. */
async function rollOut({ run, runtime }: ServiceWork, handle: Handle | null, { signal, log, attempt }: StepContext) {
  const { progress } = runtime;
  if (!handle || !progress) return handle;
  const begin = (context: Pick<RuntimeContext, 'signal' | 'log'>) =>
    progress.call(runtime, handle, { ...context, attempt });
  await run.activity.whileWaiting(() => followOutside(signal, { begin, log }, () => goesOn(run)));
  return handle;
}

/** Returns the commands to run; throws if the runtime refuses one of them. */
async function tasksOf(work: ServiceWork): Promise<PlannedTask[]> {
  const { service, run } = work;
  const options = await optionsOf(work);
  const { action } = run.snapshot;
  const tasks = kindOf(work).tasks!(service, action, identityOf(work), work.image ?? '', work.variables!, options);
  if (tasks.length > 0 && !work.image) throw new Error(`${service.name} has no image to run.`);
  for (const { task } of tasks) refuse(work, task);
  return tasks;
}

function refuse({ runtime }: ServiceWork, spec: Deployable | TaskSpec): void {
  const refusals = runtime.refusals(spec);
  if (refusals.length > 0) throw new Error(refusals.join(' '));
}

async function optionsOf(work: ServiceWork): Promise<WorkloadOptions> {
  const { run, opened } = work;
  const { proxyDomain, builtInVariablePrefix } = run.parts.platform.settings;
  const registry = await accessOf(work);
  const { bestEffort } = run.snapshot;
  const fetched = work.fetched ?? null;
  return { proxyDomain, outputPath: outputPathOf(builtInVariablePrefix), registry, opened, bestEffort, fetched };
}

/** Returns the credentials for pulling the service's image; null if it needs none. */
async function accessOf(work: ServiceWork): Promise<RegistryAccess | null> {
  const { run, runtime, image } = work;
  const built = image ? await again(async () => runtime.registryOf?.(identityOf(work), image, run.signal)) : undefined;
  if (built !== undefined) return built;
  const registryId = registryOf(work);
  if (registryId === undefined) return null;
  return again(() => sourcesOf(run).registryAccess(run.scope.organizationId, registryId));
}

/** Returns the registry of the image. A removal uses the released image, whose registry may differ from the configured one. */
function registryOf(work: ServiceWork): string | undefined {
  const { run, service, facts } = work;
  if (run.snapshot.action !== 'DEPLOY' && run.snapshot.action !== 'RUN')
    return facts?.release ? facts.release.imageSource?.registryId : undefined;
  const source = kindOf(work).source(service);
  return source?.type === 'image' ? source.registryId : undefined;
}

/** Lets the kind complete what was deployed. */
async function complete(work: ServiceWork, handle: Handle | null, { signal, log }: RuntimeContext) {
  const { run, runtime, service, facts } = work;
  const hook = run.parts.hooks[service.kind]?.afterDeployment;
  if (!handle || !hook) return handle;
  const context = systemContext({ ...run.parts.platform, db: run.db });
  const { organizationId } = run.scope;
  const isFirst = !facts?.release;
  return hook(context, service, { organizationId, nodeId: run.parts.nodeId, runtime, handle, isFirst, signal, log });
}

/** Lets the kind save what must outlive the service. */
async function saveBefore(work: ServiceWork, { signal, log }: RuntimeContext): Promise<void> {
  const { run, runtime, service, facts } = work;
  const context = systemContext({ ...run.parts.platform, db: run.db });
  await run.parts.hooks[service.kind]?.beforeRemoval?.(context, service, {
    organizationId: run.scope.organizationId,
    deploymentId: run.claim.deployment.id,
    nodeId: run.parts.nodeId,
    generation: identityOf(work).generation,
    runtime,
    handle: facts?.handle ?? null,
    bestEffort: run.snapshot.bestEffort,
    signal,
    log,
  });
}

async function applyAction(work: ServiceWork, context: StepContext): Promise<Handle | null> {
  const { runtime, facts, service, run } = work;
  switch (run.snapshot.action) {
    case 'DEPLOY':
      return complete(work, await rollOut(work, await applyDeployable(work, context), context), context);
    case 'RUN':
      return facts?.handle ?? null;
    case 'STOP':
      // Also without a handle: a first deployment that was cut off by force may have left something that runs.
      if (kindOf(work).deployable && facts && facts.wanted !== 'absent')
        await runtime.stop(identityOf(work), facts.handle, context);
      return facts?.handle ?? null;
    case 'RESTART':
      if (!kindOf(work).deployable) return null;
      if (!facts?.handle) throw new Error(`${service.name} is not running: deploy it first.`);
      return rollOut(work, await runtime.restart(facts.handle, identityOf(work).generation, context), context);
    case 'DELETE':
    case 'UNINSTALL':
      await saveBefore(work, context);
      await runtime.remove(identityOf(work), facts?.handle ?? null, context);
      if (!kindOf(work).deployable) context.log('What its runs have left is removed.');
      return null;
  }
}
