import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { isReplaced, requireHeld } from '#runtimes/attempt.ts';
import type { Upstream } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { Handle, RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { LOOPBACK, reachedPorts } from './container-config.ts';
import type { Placement } from './container-config.ts';
import { asRuntimeError, engineMessage } from './errors.ts';
import { collectFileVolumes, linkFiles } from './files.ts';
import { retireInstance } from './former-logs.ts';
import { endInstances, isUp, listInstances, routesTo, startContainer, stopInstance } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { chooseAddress, ensureNetwork, setAliases } from './network.ts';
import type { EnvironmentNetwork } from './network.ts';
import type { DockerNode } from './node.ts';
import { waitReady } from './readiness.ts';
import { handleOf, isExclusive, publishedPorts } from './release.ts';
import type { Release } from './release.ts';
import { findContainers } from './search.ts';

/** Change from the present instances to instances of one release. */
export interface Rollout {
  identity: WorkloadIdentity;
  /** Generation of the requesting deployment, and the number of the attempt at it. */
  asked: number;
  attempt: number;
  release: Release;
  /** All containers of the service before the rollout. */
  present: Instance[];
  /** Present instances that stay. */
  adopted: Instance[];
  /** Returns the container options for a new instance. */
  optionsFor(placement: Placement): Docker.ContainerCreateOptions;
  /** Creates the volumes that instances need; called before an instance is created. */
  prepare(): Promise<void>;
  /** Paths of the file variables. */
  filePaths: string[];
  secrets: string[];
}

/** Rollout under way. */
interface Stage extends Rollout {
  network: EnvironmentNetwork;
  /** Instances to remove once the new ones serve. */
  old: Instance[];
  /** Old instances that serve, or served until a crashed rollout stopped them: they run again if this one fails. */
  serving: Instance[];
  /** Old instances that an earlier attempt made and did not get ready: they never run again. */
  abandoned: Instance[];
}

/**
 * Creates the instances, waits until they are ready, gives them the service's name and routes, then ends the old ones. On failure the new
 * instances are removed and the old ones serve on. The only state between calls is the engine's, so that after a crash at any point the
 * next call continues (docs/contributing/engine.md, *Outside the database*).
 */
export async function rollOut(node: DockerNode, rollout: Rollout, context: RuntimeContext): Promise<Handle> {
  const { identity, release, present, adopted } = rollout;
  context.signal.throwIfAborted();
  const network = await ensureNetwork(node, identity);
  const old = present.filter((instance) => !adopted.includes(instance));
  const abandoned = old.filter((one) => one.asked === rollout.asked && one.attempt < rollout.attempt && !one.named);
  const stage: Stage = {
    ...rollout,
    network,
    old,
    serving: old.filter((one) => (isUp(one) || one.named) && !abandoned.includes(one)),
    abandoned,
  };
  requireNewest(stage, present);
  const instances = await startInstances(node, stage, context);
  requireHeld(context);
  requireNewest(stage, await listInstances(node, identity));
  await switchOver(node, stage, instances);
  await retire(node, stage, context);
  await collectFileVolumes(node, identity);
  await node.supervise();
  return handleOf(identity, release);
}

/**
 * Returns whether an instance was made by a later attempt at the same deployment, or for a later deployment. A rollout that no other attempt can
 * follow (the restart of a restored database) has a number for `asked` that is unrelated to deployments.
 */
const isNewer = (stage: Stage, { generation, asked, attempt }: Instance): boolean =>
  generation > stage.asked ||
  (asked > stage.asked && attempt > 0) ||
  (asked === stage.asked && attempt > stage.attempt);

/** Throws RuntimeError `superseded` if a later attempt has begun: this one must not change anything. */
function requireNewest(stage: Stage, present: Instance[]): void {
  const newer = present.find((instance) => isNewer(stage, instance));
  if (newer)
    throw new RuntimeError(
      'superseded',
      `${newer.name} was made by a later attempt (generation ${newer.asked}, attempt ${newer.attempt}): attempt ${stage.attempt} came too late.`,
    );
}

/** Starts missing instances and returns all ready ones, adopted or new. On failure new ones are removed and stopped ones run again. */
async function startInstances(node: DockerNode, stage: Stage, context: RuntimeContext): Promise<Instance[]> {
  const made: string[] = [];
  let stopped = false;
  try {
    // New containers show an earlier attempt that this one has begun: they are created before anything is stopped.
    const present = await createCandidates(node, stage, made, context);
    requireNewest(stage, present);
    const ids = new Set([...made, ...stage.adopted.map(({ id }) => id)]);
    const all = present.filter(({ id }) => ids.has(id));
    const waiting = all.filter((instance) => !isUp(instance));
    const inTheWay = present.filter((instance) => !ids.has(instance.id) && isUp(instance));
    if (waiting.length > 0 && inTheWay.length > 0 && isExclusive(stage.release)) {
      context.log('Storage or a published port is shared with the previous release: it is stopped first.');
      stopped = true;
      await endInstances(node, inTheWay, stage.release.gracePeriodSeconds);
    }
    requireHeld(context);
    await Promise.all(waiting.map((instance) => start(node, stage, instance, context)));
    await Promise.all(all.map((instance) => waitFor(node, stage, instance, context)));
    return all;
  } catch (error) {
    const cause = asRuntimeError(error, context.signal);
    await undo(node, stage, { made, stopped }, context);
    throw cause;
  }
}

/** Removes the candidates of a failed rollout and restarts the stopped instances; does nothing if there is a later attempt. */
async function undo(
  node: DockerNode,
  stage: Stage,
  { made, stopped }: { made: string[]; stopped: boolean },
  context: RuntimeContext,
): Promise<void> {
  if (isReplaced(context)) return;
  try {
    const present = await listInstances(node, stage.identity);
    if (present.some((instance) => isNewer(stage, instance))) return;
    const unready = [...stage.adopted.filter((instance) => !instance.named), ...stage.abandoned].map(({ id }) => id);
    await Promise.all([...made, ...unready].map((id) => retireInstance(node, id, (line) => context.log(line))));
    // Instances of the new release that serve since an earlier attempt stay: nothing may run beside them.
    const serves = stage.adopted.some((instance) => instance.named);
    if (stopped && !serves && !isReplaced(context)) await startAgain(node, stage, context);
  } catch (error) {
    context.log(`What was made could not all be removed: ${engineMessage(error)}`);
  }
}

const waitFor = (node: DockerNode, stage: Stage, instance: Instance, context: RuntimeContext): Promise<void> =>
  waitReady(node, instance, {
    release: stage.release,
    secrets: stage.secrets,
    signal: context.signal,
    log: (line) => context.log(line),
  });

/**
 * Creates the missing instances and returns all present ones. Ids are added to `made` one by one, so that a failure in between leaves none
 * unknown.
 */
async function createCandidates(
  node: DockerNode,
  stage: Stage,
  made: string[],
  context: RuntimeContext,
): Promise<Instance[]> {
  const { identity, release, present, adopted } = stage;
  const taken = new Set(present.filter((one) => one.generation === identity.generation).map((one) => one.number));
  const missing = Math.max(release.wanted - adopted.length, 0);
  if (missing > 0) await stage.prepare();
  const numbers = Array.from({ length: taken.size + missing }, (_, index) => index + 1).filter((n) => !taken.has(n));
  for (const instance of numbers.slice(0, missing)) {
    requireHeld(context);
    // Addresses are chosen and used under one lock: otherwise two containers of the environment could get the same.
    await node.environments.run(identity.environmentId, async () => {
      const placement = await place(node, stage, instance);
      const container = await node.engine.createContainer(stage.optionsFor(placement));
      made.push(container.id);
      await linkFiles(container, stage.filePaths);
    });
  }
  return listInstances(node, identity);
}

async function place(node: DockerNode, stage: Stage, instance: number): Promise<Placement> {
  const { network, release, attempt } = stage;
  const address = await chooseAddress(node, network);
  if (network.direct) return { instance, attempt, network: network.name, address, published: null };
  const published: Record<number, Upstream> = {};
  for (const port of reachedPorts(release.ports, [release.readiness, release.liveness]))
    published[port] = { address: node.publishAddress, port: await freePort(node.publishAddress) };
  return { instance, attempt, network: network.name, address, published };
}

/** Returns a free port for publishing that stays the same over restarts; for another machine the port is a guess. */
function freePort(address: string): Promise<number> {
  if (address !== LOOPBACK) return Promise.resolve(randomInt(20_000, 32_000));
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, LOOPBACK, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

async function start(node: DockerNode, stage: Stage, instance: Instance, context: RuntimeContext): Promise<void> {
  context.signal.throwIfAborted();
  context.log(`Starting ${instance.name}.`);
  try {
    await startContainer(node, instance.id);
  } catch (error) {
    const said = engineMessage(error);
    if (!/port is already allocated|address already in use/i.test(said))
      throw (error as { statusCode?: number }).statusCode === 400 || /runc|OCI|exec|executable/i.test(said)
        ? new RuntimeError('not_ready', `${instance.name} cannot be started: ${said}`, error)
        : error;
    throw new RuntimeError('failed', await portTaken(node, stage, said), error);
  }
}

/** Explains that a published port is taken, and names the service that has it, if known. */
async function portTaken(node: DockerNode, stage: Stage, said: string): Promise<string> {
  const wanted = publishedPorts(stage.release.ports).map((port) => port.externalPort);
  const containers = await findContainers(node);
  const holder = containers.find((container) => container.Ports.some((port) => wanted.includes(port.PublicPort)));
  const by = holder
    ? `the service ${holder.Labels[LABEL.name]} (${holder.Names[0]?.slice(1)})`
    : 'another program of this machine';
  return `A port that this service publishes (${wanted.join(', ')}) is taken by ${by}: ${said}`;
}

/** Directs traffic to the new release: siblings resolve the name to it, and the proxy sends new requests to it. */
async function switchOver(node: DockerNode, stage: Stage, instances: Instance[]): Promise<void> {
  const { identity, release, network } = stage;
  for (const instance of instances.filter((each) => !each.named))
    await setAliases(node, network, instance, [release.hostname]);
  await node.router.set(identity.serviceId, identity.generation, routesTo(release, instances));
}

/** Drains and removes the old instances. */
async function retire(node: DockerNode, stage: Stage, context: RuntimeContext): Promise<void> {
  const { release, old } = stage;
  if (old.length === 0) return;
  const running = (await listInstances(node, stage.identity)).filter(
    (one) => isUp(one) && old.some(({ id }) => id === one.id),
  );
  // A cancellation does not cut this short: the new release serves already, and the next attempt would do the same.
  await node.router.drained(upstreamsOf(running), release.gracePeriodSeconds * 1000);
  requireHeld(context);
  await takeName(
    node,
    stage,
    running.filter((one) => one.named && one.state.Running),
    context,
  );
  requireHeld(context);
  await stopAll(node, running, release.gracePeriodSeconds);
  requireHeld(context);
  for (const instance of old) context.log(`Removing ${instance.name}.`);
  await Promise.all(old.map(({ id }) => retireInstance(node, id, (line) => context.log(line))));
}

/**
 * Milliseconds after which a sibling has retried to connect: while an instance loses its name it has no network, and lost packets are sent
 * again after a second (Linux' first time-out of a connection).
 */
const RETRY_MS = 1500;

/**
 * Makes siblings stop resolving the service's name to instances that are about to end. Connections survive this (network.ts) except those
 * through a published port, so it comes after the routes are drained.
 */
async function takeName(
  node: DockerNode,
  { network, identity }: Stage,
  instances: Instance[],
  context: RuntimeContext,
): Promise<void> {
  const around = await node.engine.listContainers({ filters: { network: [network.name] } });
  if (instances.length === 0 || around.every((one) => one.Labels[LABEL.service] === identity.serviceId)) return;
  for (const instance of instances) {
    await setAliases(node, network, instance, []).catch((error: unknown) =>
      context.log(`${instance.name} keeps its name until it ends: ${engineMessage(error)}`),
    );
  }
  await sleep(RETRY_MS);
}

/** Every upstream of these instances that the proxy may use, whatever ports their release had. */
export const upstreamsOf = (instances: Instance[]): Upstream[] =>
  instances.flatMap((instance) => Object.values(instance.endpoints));

export const stopAll = async (node: DockerNode, instances: Instance[], graceSeconds: number): Promise<void> => {
  await Promise.all(instances.map((instance) => stopInstance(node, instance, graceSeconds)));
};

/** Restarts the previous release after the failure of a candidate that it had made room for. Its routes were never moved. */
async function startAgain(node: DockerNode, stage: Stage, context: RuntimeContext): Promise<void> {
  context.log('The previous release is started again.');
  await Promise.all(stage.serving.map((instance) => startContainer(node, instance.id)));
}
