import { maskOf } from '#kernel/secrets-mask.ts';
import type Docker from 'dockerode';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { RuntimeContext, TaskContext, TaskEnd, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import { makeWayOut, removeWaysOut, tellingProxy, type WayOut } from './egress.ts';
import { asRuntimeError, engineMessage, statusOf, unless } from './errors.ts';
import { collectFileVolumes, ensureVolumes, linkFiles } from './files.ts';
import { removeInstance } from './instances.ts';
import { LABEL, taskName } from './labels.ts';
import { chooseAddress, ensureNetwork, removeNetworkIfLast } from './network.ts';
import type { DockerNode } from './node.ts';
import { ensureImage } from './pull.ts';
import { refusals } from './refusals.ts';
import { findContainers } from './search.ts';
import { taskOptions } from './task-config.ts';
import { awaitEnd, hasBegun } from './task-end.ts';
import { makeOutputFolder, markEnded, putFolders } from './task-files.ts';

/** Maximum number of attempts to create a container whose image or network is removed meanwhile. */
const ATTEMPTS = 3;

/** Runs a command to its end in a new container, or adopts an existing one (`Runtime.run`). */
export async function runTask(node: DockerNode, spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
  context.signal.throwIfAborted();
  const present = await findTask(node, spec);
  if (present && hasBegun(present.State)) {
    context.log(`${spec.displayName} (${spec.name}) was begun already: it is taken over.`);
    return tellingProxy(node, spec, context, () => awaitEnd(node, spec, present, context));
  }
  const refused = refusals(spec);
  if (refused.length > 0) throw new RuntimeError('refused', refused.join(' '));
  // Created but never started: the creating process crashed and files may be missing. It is created again.
  if (present) await removeInstance(node, present.Id);
  await context.prepare?.();
  const way = spec.egress ? await makeWayOut(node, spec, context) : null;
  const container = await make(node, spec, way, context);
  const begun = await start(node, spec, container, context);
  return tellingProxy(node, spec, context, () => awaitEnd(node, spec, begun, context));
}

/** Finds the container of an execution by its name; null if there is none. Throws if a foreign container has the name. */
async function findTask(node: DockerNode, spec: TaskSpec): Promise<Docker.ContainerInspectInfo | null> {
  const found = await unless([404], node.engine.getContainer(taskName(spec)).inspect());
  if (found && found.Config.Labels[LABEL.installation] !== node.installation)
    throw new RuntimeError('refused', `A container ${taskName(spec)} is there that is not ours. Remove or rename it.`);
  return found;
}

async function make(
  node: DockerNode,
  spec: TaskSpec,
  way: WayOut | null,
  context: RuntimeContext,
): Promise<Docker.Container> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await makeOnce(node, spec, way, context);
    } catch (error) {
      // An unused image or an empty network may have been removed meanwhile.
      if (statusOf(error) !== 404 || attempt === ATTEMPTS) throw error;
    }
  }
}

async function makeOnce(
  node: DockerNode,
  spec: TaskSpec,
  way: WayOut | null,
  context: RuntimeContext,
): Promise<Docker.Container> {
  const { environmentId } = spec.identity;
  const { cpus } = await node.about();
  const id = await ensureImage(node, spec, context);
  const network = way ? null : await ensureNetwork(node, spec.identity);
  // One lock: no two containers of the environment get the same address, and volumes not in use yet are not removed.
  const container = await node.environments.run(environmentId, async () => {
    context.signal.throwIfAborted();
    await ensureVolumes(node, spec, id);
    const place = network ? { network: network.name, address: await chooseAddress(node, network) } : way!;
    return node.engine.createContainer(taskOptions(spec, { id, cpus, processes: node.processLimit }, place, way));
  });
  try {
    await linkFiles(
      container,
      spec.files.map(({ path }) => path),
    );
    await makeOutputFolder(container, spec);
    await putFolders(container, spec.folders);
    return container;
  } catch (error) {
    await removeInstance(node, container.id);
    throw error;
  }
}

/** Starts the container. The engine's state afterwards decides whether it has begun, not the outcome of the call. */
async function start(
  node: DockerNode,
  spec: TaskSpec,
  container: Docker.Container,
  context: RuntimeContext,
): Promise<Docker.ContainerInspectInfo> {
  try {
    context.signal.throwIfAborted();
    await container.start();
    return await container.inspect();
  } catch (error) {
    if (asRuntimeError(error, context.signal).code === 'unreachable') throw error;
    const inspected = await unless([404], container.inspect());
    if (inspected && hasBegun(inspected.State)) return inspected;
    await removeInstance(node, container.id);
    context.signal.throwIfAborted();
    throw new RuntimeError('failed', maskOf(spec.secrets)(`The command cannot be started: ${engineMessage(error)}`));
  }
}

/** Ends and removes executions of a service (`Runtime.removeTasks`). */
export async function removeTasks(
  node: DockerNode,
  identity: Pick<WorkloadIdentity, 'serviceId' | 'environmentId'>,
  names: string[],
): Promise<void> {
  const containers = await findContainers(node, { [LABEL.service]: identity.serviceId });
  const tasks = containers.filter(({ Labels: { [LABEL.task]: name } }) => name !== undefined && names.includes(name));
  await Promise.all(tasks.map((task) => removeTask(node, task)));
  if (tasks.length > 0) await node.environments.run(identity.environmentId, () => collectFileVolumes(node, identity));
  // The execution may have been the last user of its environment's network.
  if (await removeWaysOut(node, identity, names)) await removeNetworkIfLast(node, identity.environmentId);
}

async function removeTask(
  node: DockerNode,
  { Id: id, Labels: labels, State: state }: Docker.ContainerInfo,
): Promise<void> {
  const container = node.engine.getContainer(id);
  if (state === 'running') await markEnded(container, 'abort');
  await unless([304, 404], container.stop({ t: Number(labels[LABEL.grace]) }));
  await removeInstance(node, id);
}
