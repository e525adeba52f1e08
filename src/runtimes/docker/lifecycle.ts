import { requireHeld } from '#runtimes/attempt.ts';
import { RuntimeError, type Handle, type RuntimeContext, type WorkloadIdentity } from '#runtimes/runtime.ts';
import { removeImages } from './build.ts';
import { removeWaysOut } from './egress.ts';
import { unless } from './errors.ts';
import { retireInstance } from './former-logs.ts';
import { isUp, listInstances, removeInstance } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL, networkName } from './labels.ts';
import { removeNetworkIfLast } from './network.ts';
import type { DockerNode } from './node.ts';
import { removePulled } from './pull.ts';
import { releaseFrom } from './release.ts';
import { stopAll, upstreamsOf } from './rollout.ts';
import { findContainers, findVolumes } from './search.ts';

/** Grace period in seconds of a removed instance whose handle isn't known. */
const DEFAULT_GRACE_SECONDS = 10;

const graceOf = (handle: Handle | null): number =>
  handle ? releaseFrom(handle).gracePeriodSeconds : DEFAULT_GRACE_SECONDS;

/** Stops all instances and keeps their containers, from which `restart` makes new ones (`Runtime.stop`). */
export async function stopService(
  node: DockerNode,
  identity: WorkloadIdentity,
  handle: Handle | null,
  context: RuntimeContext,
): Promise<void> {
  context.signal.throwIfAborted();
  const graceSeconds = graceOf(handle);
  const instances = await listInstances(node, identity);
  const running = instances.filter(isUp);
  await node.router.remove(identity.serviceId);
  await node.router.drained(upstreamsOf(running), graceSeconds * 1000);
  requireHeld(context);
  for (const instance of running) context.log(`Stopping ${instance.name}.`);
  await stopAll(node, running, graceSeconds);
  requireHeld(context);
  // A restart needs neither leftover candidates of a crash nor former releases.
  const others = instances.filter((instance) => instance.generation !== handle?.identity.generation);
  await Promise.all(others.map(({ id }) => retireInstance(node, id, (line) => context.log(line))));
  await leaveNetwork(
    node,
    instances.filter((instance) => !others.includes(instance)),
  );
  await node.supervise();
}

/**
 * Disconnects stopped instances from the network. This tells a rollout that they were stopped on purpose, not by another rollout to make
 * room.
 */
async function leaveNetwork(node: DockerNode, instances: Instance[]): Promise<void> {
  for (const instance of instances.filter((one) => one.connected)) {
    const network = node.engine.getNetwork(networkName(instance.labels[LABEL.environment]!));
    await unless([404], network.disconnect({ Container: instance.id, Force: true }));
  }
}

/** Removes a service's unused images. A foreign container may use one of them: the delete succeeds nevertheless. */
async function removeUnusedImages(
  node: DockerNode,
  identity: WorkloadIdentity,
  context: RuntimeContext,
): Promise<void> {
  try {
    await removeImages(node, identity, 'all');
  } catch (error) {
    if (!(error instanceof RuntimeError && error.code === 'failed')) throw error;
    context.log(error.message);
  }
}

/** Removes everything of a service, found by its labels (`Runtime.remove`). */
export async function removeService(
  node: DockerNode,
  identity: WorkloadIdentity,
  handle: Handle | null,
  context: RuntimeContext,
): Promise<void> {
  context.signal.throwIfAborted();
  await node.router.remove(identity.serviceId);
  const instances = await listInstances(node, identity);
  requireHeld(context);
  for (const instance of instances) context.log(`Removing ${instance.name}.`);
  await stopAll(node, instances.filter(isUp), graceOf(handle));
  requireHeld(context);
  const mine = { [LABEL.service]: identity.serviceId };
  const containers = await findContainers(node, mine);
  await Promise.all(containers.map((container) => removeInstance(node, container.Id)));
  requireHeld(context);
  for (const volume of await findVolumes(node, mine)) await unless([404], node.engine.getVolume(volume.Name).remove());
  await node.formerLogs.remove(identity.serviceId);
  await removeUnusedImages(node, identity, context);
  await removePulled(
    node,
    containers.flatMap(({ Labels: labels }) => labels[LABEL.image] ?? []),
  );
  requireHeld(context);
  await removeWaysOut(node, identity, 'all');
  await removeNetworkIfLast(node, identity.environmentId);
  await node.supervise();
}
