import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, realpath, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { systemContext } from '#platform/context.ts';
import { checkout, checkoutDirectory } from '#deployments/executor/checkouts.ts';
import { Deadline } from '#deployments/executor/deadline.ts';
import { generationOf } from '#deployments/executor/engine.ts';
import { again } from '#deployments/executor/fenced-write.ts';
import type { ServiceWork, StepContext } from '#deployments/executor/service-work.ts';
import { runTasks } from '#deployments/executor/tasks.ts';
import type { DeployableKind, PlannedTask, WorkloadOptions } from '#deployments/model/kind.ts';
import { outputPathOf } from '#deployments/model/output-path.ts';
import type { StepName } from '#deployments/model/snapshot.ts';
import type { Handle, RuntimeContext, TaskSpec, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';

export interface Step {
  /** Where the service is while the step runs. */
  phase: 'build' | 'apply' | 'execute';
  /** Whether something may exist outside from the step's beginning on. */
  applies?: boolean;
  /** Checks that need nothing outside, before the step begins. */
  prepare?(work: ServiceWork): Promise<void>;
  run(work: ServiceWork, context: StepContext): Promise<Record<string, unknown>>;
  /** Takes the output, of this attempt or of an earlier one. */
  take?(work: ServiceWork, output: any): void;
}

const clone: Step = {
  phase: 'build',
  run: async (work, context) => {
    await checkout(work, context);
    return {};
  },
};

const build: Step = {
  phase: 'build',
  prepare: expand,
  run: (work, context) => work.run.options.buildSlot(() => buildImage(work, context)),
  take: (work, output: { image: string }) => {
    work.image = output.image;
  },
};

/** The step that changes what runs, by the deployment's action. */
const deployment: Step = {
  phase: 'apply',
  applies: true,
  prepare: async (work) => {
    if (work.run.snapshot.action !== 'DEPLOY' || !kindOf(work).workload) return;
    await expand(work);
    work.workload = await workloadOf(work);
  },
  run: async (work, context) => ({ handle: await applyAction(work, { ...context, log: context.log }) }),
  take: (work, output: { handle: Handle | null }) => {
    work.handle = output.handle;
  },
};

/** Runs what comes to an end by itself: events of jobs, commands of Terraform. */
const executing: Step = {
  phase: 'execute',
  applies: true,
  prepare: async (work) => {
    await expand(work);
    work.tasks = await tasksOf(work);
  },
  run: runTasks,
};

const refused = (name: StepName): Step => ({
  phase: 'apply',
  prepare: () => Promise.reject(new Error(`This release has no step ${name}.`)),
  run: () => Promise.resolve({}),
});

/** What each step does. */
export const STEPS: Record<StepName, Step> = {
  GIT_CLONE: clone,
  BUILD: build,
  DEPLOYMENT: deployment,
  REGISTRY_CREATE_REPOSITORY: refused('REGISTRY_CREATE_REPOSITORY'),
  BUILD_QUEUEING: refused('BUILD_QUEUEING'),
  MIRROR_IMAGE: refused('MIRROR_IMAGE'),
  DEPLOYMENT_QUEUEING: refused('DEPLOYMENT_QUEUEING'),
  ROUTER_DEPLOYMENT: refused('ROUTER_DEPLOYMENT'),
  EXECUTING: executing,
};

const kindOf = ({ run, service }: ServiceWork): DeployableKind => run.parts.kinds[service.kind]!;

/** Expands once a service: with the outputs that earlier stages recorded (engine.md). */
async function expand(work: ServiceWork): Promise<void> {
  if (work.variables) return;
  const { run, service } = work;
  const { organizationId } = run.scope;
  const { environmentId, shared = [], rollbackTo } = run.snapshot;
  const isRollback = rollbackTo !== undefined;
  const deployment = { id: run.claim.deployment.id, environmentId, shared, isRollback, signal: run.signal };
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

async function buildImage(work: ServiceWork, context: StepContext): Promise<{ image: string }> {
  const { run, runtime, service } = work;
  const { settings } = run.parts.platform;
  // Nothing is resolved of what has no source.
  const { commit, image = null } = run.resolution.services[service.serviceId] ?? {};
  const recipe = kindOf(work).build?.(service, { runtime: runtime.name, settings, image });
  if (!recipe || !runtime.build)
    throw new Error(`The runtime ${runtime.name} cannot build images: use a cluster that can.`);
  const directory = checkoutDirectory(work);
  // An earlier attempt may have checked out, perhaps on another machine: in this one's folder it is made again.
  if (!existsSync(directory)) await checkout(work, context);
  const { variables, secrets } = work.variables!;
  const { dockerfile: made, ...recipeOf } = recipe;
  const dockerfile = path.join(directory, recipe.rootPath, recipe.dockerfilePath);
  const written = typeof made === 'function' ? await made((file) => readOf(directory, file)) : made;
  if (written !== undefined) await writeOwn(directory, dockerfile, written);
  const args = await declaredArguments(dockerfile, variables);
  const cacheKey = createHash('sha256')
    .update(
      JSON.stringify([
        commit?.id ?? image,
        recipe.rootPath,
        written ?? recipe.dockerfilePath,
        recipe.targetStage,
        args,
      ]),
    )
    .digest('hex')
    .slice(0, 32);
  const spec = { identity: identityOf(work), directory, ...recipeOf, arguments: args, cacheKey, secrets };
  const deadline = new Deadline(context.signal, recipe.timeoutSeconds);
  const built = await runtime
    .build(spec, { signal: deadline.signal, log: context.log })
    .catch((cause: unknown) => {
      if (!deadline.isOver) throw cause;
      const limit = `${recipe.timeoutSeconds} seconds (build.timeout_max_sec)`;
      throw new Error(`The build took longer than ${limit} and was ended.`, { cause });
    })
    .finally(() => deadline.end());
  context.log(built.cached ? `The image is there already: ${built.image}` : `Built ${built.image}`);
  await rm(directory, { recursive: true, force: true });
  return { image: built.image };
}

/** Text of a file of a checkout. A link that leads out of it leads nowhere. */
async function readOf(directory: string, file: string): Promise<string> {
  const missing = new Error(`There is no file ${file} in the repository.`);
  const real = await realpath(path.join(directory, file)).catch(() => Promise.reject(missing));
  if (!real.startsWith(`${await realpath(directory)}${path.sep}`)) throw missing;
  return readFile(real, 'utf8');
}

/** Writes a file of ours into a checkout, in place of what a repository has there: a link is not followed. */
async function writeOwn(directory: string, file: string, text: string): Promise<void> {
  const folder = await realpath(path.dirname(file));
  if (`${folder}${path.sep}`.startsWith(`${await realpath(directory)}${path.sep}`)) {
    await rm(file, { force: true, recursive: true });
    return writeFile(file, text, { flag: 'wx' });
  }
  throw new Error(`${path.basename(file)} cannot be written: its folder leads out of the repository.`);
}

/** Build arguments are the variables that the Dockerfile declares with ARG, and no others: each would be a reason to build anew. */
async function declaredArguments(
  dockerfile: string,
  variables: Record<string, string>,
): Promise<Record<string, string>> {
  const text = await readFile(dockerfile, 'utf8').catch((cause) => {
    throw new Error(
      `There is no Dockerfile at ${path.basename(dockerfile)} in the repository: set dockerfile_path and root_path.`,
      { cause },
    );
  });
  const names = [...text.matchAll(/^\s*ARG\s+(.+)$/gim)].flatMap(([, rest]) =>
    rest!.split(/\s+/).map((part) => part.split('=')[0]!),
  );
  return Object.fromEntries(names.filter((name) => name in variables).map((name) => [name, variables[name]!]));
}

const identityOf = ({ run, service }: ServiceWork): WorkloadIdentity => ({
  installation: run.parts.installation.id,
  organizationId: run.scope.organizationId,
  projectId: run.snapshot.projectId,
  environmentId: run.snapshot.environmentId,
  serviceId: service.serviceId,
  generation: generationOf(run.parts.installation.epoch, run.claim.deployment.number),
});

/** The workload to apply; throws what the runtime refuses of it. */
async function workloadOf(work: ServiceWork): Promise<WorkloadSpec> {
  const { service } = work;
  if (!work.image) throw new Error(`${service.name} has no image to deploy.`);
  const options = await optionsOf(work);
  const workload = kindOf(work).workload!(service, identityOf(work), work.image, work.variables!, options);
  refuse(work, workload);
  return workload;
}

/** The commands to run; throws what the runtime refuses of them. */
async function tasksOf(work: ServiceWork): Promise<PlannedTask[]> {
  const { service, run } = work;
  const options = await optionsOf(work);
  const { action } = run.snapshot;
  const tasks = kindOf(work).tasks!(service, action, identityOf(work), work.image ?? '', work.variables!, options);
  if (tasks.length > 0 && !work.image) throw new Error(`${service.name} has no image to run.`);
  for (const { task } of tasks) refuse(work, task);
  return tasks;
}

function refuse({ runtime }: ServiceWork, spec: WorkloadSpec | TaskSpec): void {
  const refusals = runtime.refusals(spec);
  if (refusals.length > 0) throw new Error(refusals.join(' '));
}

async function optionsOf(work: ServiceWork): Promise<WorkloadOptions> {
  const { run, opened } = work;
  const { proxyDomain, builtInVariablePrefix } = run.parts.platform.settings;
  const registryId = registryOf(work);
  const registry =
    registryId === undefined
      ? null
      : await again(() => run.parts.sources.registryAccess(run.scope.organizationId, registryId));
  const { bestEffort } = run.snapshot;
  return { proxyDomain, outputPath: outputPathOf(builtInVariablePrefix), registry, opened, bestEffort };
}

/** The registry that the image is of: what is taken down by the image that was released may be configured otherwise since. */
function registryOf(work: ServiceWork): string | undefined {
  const { run, service, facts } = work;
  if (run.snapshot.action !== 'DEPLOY' && run.snapshot.action !== 'RUN')
    return facts?.release ? facts.release.imageSource?.registryId : undefined;
  const source = kindOf(work).source(service);
  return source?.type === 'image' ? source.registryId : undefined;
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

async function applyAction(work: ServiceWork, context: RuntimeContext): Promise<Handle | null> {
  const { runtime, facts, service, run } = work;
  switch (run.snapshot.action) {
    case 'DEPLOY':
      return work.workload ? runtime.apply(work.workload, context) : (facts?.handle ?? null);
    case 'RUN':
      return facts?.handle ?? null;
    case 'STOP':
      if (facts?.handle) await runtime.stop(facts.handle, context);
      return facts?.handle ?? null;
    case 'RESTART':
      if (!kindOf(work).workload) return null;
      if (!facts?.handle) throw new Error(`${service.name} is not running: deploy it first.`);
      return runtime.restart(facts.handle, identityOf(work).generation, context);
    case 'DELETE':
    case 'UNINSTALL':
      await saveBefore(work, context);
      await runtime.remove(identityOf(work), facts?.handle ?? null, context);
      if (!kindOf(work).workload) context.log('What its runs have left is removed.');
      return null;
  }
}
