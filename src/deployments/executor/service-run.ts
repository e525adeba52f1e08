import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { systemContext } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import type { Claim } from '#deployments/executor/claims.ts';
import { generationOf, type EngineParts } from '#deployments/executor/engine.ts';
import {
  deleteService,
  markWanted,
  recordHandle,
  recordRelease,
  type ServiceFacts,
} from '#deployments/executor/facts.ts';
import { runStep, type StepPlace } from '#deployments/executor/step-log.ts';
import type { DeploymentLog, Mask } from '#deployments/logs/writer.ts';
import type { ExpandedVariables } from '#deployments/model/kind.ts';
import type {
  Plan,
  PlannedService,
  Resolution,
  ServiceSnapshot,
  Snapshot,
  StepName,
} from '#deployments/model/snapshot.ts';
import type { Span } from '#platform/telemetry/index.ts';
import type { Handle, Runtime, RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';

export interface ServiceRun {
  parts: EngineParts;
  claim: Claim;
  snapshot: Snapshot;
  resolution: Resolution;
  plan: Plan;
  planned: PlannedService;
  service: ServiceSnapshot;
  facts: ServiceFacts | undefined;
  runtime: Runtime;
  log: DeploymentLog;
  span: Span;
  signal: AbortSignal;
  /** Waits for a place among the builds of this worker. */
  buildSlot: <T>(work: () => Promise<T>) => Promise<T>;
  /** Moves the service's state. */
  move(trigger: 'build' | 'apply' | 'execute'): Promise<void>;
  /** Called in the transaction of the last step: state and facts stand together. */
  succeed(db: Database): Promise<void>;
}

/** Carries out a service's steps in a row. Throws what made one fail. */
export async function runService(run: ServiceRun): Promise<void> {
  const state: StepState = {
    variables: undefined,
    mask: (text) => text,
    image: run.planned.image,
    buildKey: run.planned.buildKey,
  };
  for (const [position, name] of run.planned.steps.entries()) {
    run.signal.throwIfAborted();
    const place: StepPlace = { claim: run.claim, serviceId: run.service.serviceId, position, name, span: run.span };
    await STEPS[name](run, place, state);
  }
}

interface StepState {
  variables: ExpandedVariables | undefined;
  mask: Mask;
  image: string | null;
  buildKey: string | null;
}

type Step = (run: ServiceRun, place: StepPlace, state: StepState) => Promise<void>;

const refused: Step = (_run, place) => Promise.reject(new Error(`This release has no step ${place.name}.`));

const STEPS: Record<StepName, Step> = {
  GIT_CLONE: async (run, place) => {
    await run.move('build');
    await runStep(run.parts.platform.db, place, async () => {
      await checkout(run);
      return {};
    });
  },
  BUILD: async (run, place, state) => {
    await run.move('build');
    const variables = await expand(run, state);
    const output = await runStep(run.parts.platform.db, place, () =>
      run.buildSlot(() => build(run, variables, state.mask)),
    );
    state.image = output.image;
    await rm(checkoutDirectory(run), { recursive: true, force: true });
  },
  DEPLOYMENT: async (run, place, state) => {
    await run.move('apply');
    await runStep<{ handle: Handle | null }>(
      run.parts.platform.db,
      place,
      () => applyAction(run, state),
      (db, output) => finish(run, db, state, output.handle),
    );
  },
  REGISTRY_CREATE_REPOSITORY: refused,
  BUILD_QUEUEING: refused,
  MIRROR_IMAGE: refused,
  DEPLOYMENT_QUEUEING: refused,
  ROUTER_DEPLOYMENT: refused,
  EXECUTING: refused,
};

/** Derived from ids, so that a crash leaves nothing that nobody knows of. */
const checkoutDirectory = (run: ServiceRun): string =>
  path.join(run.parts.workDirectory, run.claim.deployment.id, run.service.serviceId);

const writer = (run: ServiceRun, step: string, mask: Mask) => (text: string) =>
  run.log.write({ serviceId: run.service.serviceId, step, text: mask(text) });

async function checkout(run: ServiceRun): Promise<void> {
  const source = run.parts.kinds[run.service.kind]!.source(run.service);
  const commit = run.resolution.services[run.service.serviceId]?.commit;
  if (!source || !commit) throw new Error(`${run.service.name} has no source to build from.`);
  const directory = checkoutDirectory(run);
  await rm(directory, { recursive: true, force: true });
  const log = writer(run, 'GIT_CLONE', (text) => text);
  log(`Cloning ${source.url} at ${commit.id}`);
  await run.parts.sources.checkout({
    ...source,
    organizationId: run.snapshot.organizationId,
    commit: commit.id,
    directory,
    signal: run.signal,
    log,
  });
}

/** Expands once a service: with the outputs that earlier stages recorded (engine.md). */
async function expand(run: ServiceRun, state: StepState): Promise<ExpandedVariables> {
  if (state.variables) return state.variables;
  const context = systemContext(run.parts.platform);
  const { warnings, ...variables } = await run.parts.expand(context, run.snapshot.organizationId, run.service);
  state.mask = run.parts.makeMask(variables.secrets);
  for (const warning of warnings) writer(run, 'DEPLOYMENT', state.mask)(warning);
  state.variables = variables;
  return variables;
}

async function build(run: ServiceRun, variables: ExpandedVariables, mask: Mask): Promise<{ image: string }> {
  const { runtime, service } = run;
  const recipe = run.parts.kinds[service.kind]!.build?.(service);
  if (!recipe || !runtime.build)
    throw new Error(`The runtime ${runtime.name} cannot build images: use a cluster that can.`);
  const directory = checkoutDirectory(run);
  // A crash between the steps may have come with a new machine: the checkout is made again where it is missing.
  if (!existsSync(directory)) await checkout(run);
  const args = await declaredArguments(
    path.join(directory, recipe.rootPath, recipe.dockerfilePath),
    variables.variables,
  );
  const commit = run.resolution.services[service.serviceId]!.commit!;
  const cacheKey = createHash('sha256')
    .update(JSON.stringify([commit.id, recipe.rootPath, recipe.dockerfilePath, recipe.targetStage, args]))
    .digest('hex')
    .slice(0, 32);
  const spec = {
    identity: identityOf(run),
    directory,
    ...recipe,
    arguments: args,
    cacheKey,
    secrets: variables.secrets,
  };
  const log = writer(run, 'BUILD', mask);
  const { image, cached } = await runtime.build(spec, {
    signal: AbortSignal.any([run.signal, AbortSignal.timeout(recipe.timeoutSeconds * 1000)]),
    log,
  });
  log(cached ? `The image is there already: ${image}` : `Built ${image}`);
  return { image };
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

const identityOf = (run: ServiceRun): WorkloadIdentity => ({
  installation: run.parts.installation.id,
  organizationId: run.snapshot.organizationId,
  projectId: run.snapshot.projectId,
  environmentId: run.snapshot.environmentId,
  serviceId: run.service.serviceId,
  generation: generationOf(run.parts.installation.epoch, run.claim.deployment.number),
});

async function applyAction(run: ServiceRun, state: StepState): Promise<{ handle: Handle | null }> {
  const { runtime, facts, service, snapshot } = run;
  const scope = { organizationId: snapshot.organizationId };
  const context = (mask: Mask): RuntimeContext => ({ signal: run.signal, log: writer(run, 'DEPLOYMENT', mask) });
  switch (snapshot.action) {
    case 'DEPLOY': {
      const variables = await expand(run, state);
      if (!state.image) throw new Error(`${service.name} has no image to deploy.`);
      const workload = run.parts.kinds[service.kind]!.workload(service, identityOf(run), state.image, variables, {
        proxyDomain: run.parts.platform.settings.proxyDomain,
      });
      const refusals = runtime.refusals(workload);
      if (refusals.length > 0) throw new Error(refusals.join(' '));
      await markWanted(run.parts.platform.db, scope, service.serviceId, 'running');
      return { handle: await runtime.apply(workload, context(state.mask)) };
    }
    case 'STOP':
      if (facts?.handle) await runtime.stop(facts.handle, context(state.mask));
      return { handle: facts?.handle ?? null };
    case 'RESTART':
      if (!facts?.handle) throw new Error(`${service.name} is not running: deploy it first.`);
      return { handle: await runtime.restart(facts.handle, context(state.mask)) };
    case 'DELETE':
    case 'UNINSTALL':
      await runtime.remove(identityOf(run), facts?.handle ?? null, context(state.mask));
      return { handle: null };
  }
}

/** Facts and state of the end, in the transaction that ends the step. */
async function finish(run: ServiceRun, db: Database, state: StepState, handle: Handle | null): Promise<void> {
  const { snapshot, service, facts } = run;
  const scope = { organizationId: snapshot.organizationId };
  switch (snapshot.action) {
    case 'DEPLOY':
      await recordRelease(db, scope, {
        deploymentId: run.claim.deployment.id,
        service,
        resolution: run.resolution.services[service.serviceId] ?? {},
        image: state.image,
        buildKey: state.buildKey,
        handle: handle!,
      });
      break;
    case 'STOP':
      await recordHandle(db, scope, service.serviceId, handle, facts?.wanted === 'absent' ? 'absent' : 'stopped');
      break;
    case 'RESTART':
      await recordHandle(db, scope, service.serviceId, handle, 'running');
      break;
    case 'UNINSTALL':
      await recordHandle(db, scope, service.serviceId, null, 'absent');
      break;
    case 'DELETE':
      await deleteService(db, scope, service.serviceId);
  }
  await run.succeed(db);
}
