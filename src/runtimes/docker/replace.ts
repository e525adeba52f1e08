import { maskOf } from '#kernel/secrets-mask.ts';
import type { LogLine, RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { LAST_LINES } from '#runtimes/runtime.ts';
import { replacementOptions } from './container-config.ts';
import { unless } from './errors.ts';
import { secretValues } from './secret-values.ts';
import { linkFiles } from './files.ts';
import { retireInstance } from './former-logs.ts';
import { listInstances, removeInstance, startContainer, stopInstance } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { lastLines } from './logs.ts';
import type { DockerNode } from './node.ts';
import { findContainers } from './search.ts';

/** Suffix of the names of replacement containers, until the originals are gone. */
const NEXT = '.next';
/** Seconds after which a container that was made but not started is attributed to a process that was killed. */
const STARTING_SECONDS = 60;

/**
 * Replaces an instance by a new one from its image (`Runtime.replaceInstance`). A process that is killed in between leaves an instance that
 * is still too large, which is replaced again, or one that was not started, which `startReplacements` starts.
 */
export async function replaceInstance(
  node: DockerNode,
  identity: Pick<WorkloadIdentity, 'serviceId'>,
  name: string,
  reason: string,
  context: RuntimeContext,
): Promise<LogLine[] | null> {
  context.signal.throwIfAborted();
  const present = await listInstances(node, identity);
  for (const left of present.filter((one) => one.name === name + NEXT)) await removeInstance(node, left.id);
  const instance = present.find((one) => one.name === name);
  // Instances that were stopped on purpose have left the network.
  if (!instance?.connected) return null;
  const mask = maskOf(await secretValues(node, instance));
  const lines = (await lastLines(node, instance, LAST_LINES)).map((line) => ({ ...line, text: mask(line.text) }));
  context.log(`Ending ${name}: ${reason}`);
  await stopInstance(node, instance, Number(instance.labels[LABEL.grace] ?? 10));
  const exit = { code: null, signal: null, reason, at: new Date().toISOString() };
  const times = (instance.replaced?.times ?? 0) + instance.restarts + 1;
  const options = replacementOptions(instance, { times, exit });
  const container = await node.engine.createContainer({ ...options, name: name + NEXT });
  await linkFiles(container, filesOf(instance));
  await retireInstance(node, instance.id, (line) => context.log(line));
  await container.rename({ name });
  await startContainer(node, container.id);
  await node.supervise();
  context.log(`Started ${name} anew from its image.`);
  return lines;
}

const filesOf = ({ labels }: Instance): string[] => JSON.parse(labels[LABEL.files] ?? '[]') as string[];

/** Starts replacement containers that a killed process left behind before starting them. */
export async function startReplacements(node: DockerNode): Promise<void> {
  const containers = await findContainers(node);
  const made = containers.filter(({ Labels: labels, State: state }) => labels[LABEL.replaced] && state === 'created');
  for (const { Id: id, Names: names, Created: created, Labels: labels } of made) {
    if (created > Date.now() / 1000 - STARTING_SECONDS) continue;
    const name = names[0]!.slice(1).replace(/\.next$/, '');
    const isAlone = containers.every((other) => other.Names[0] !== `/${name}` || other.Id === id);
    if (!isAlone) continue;
    const container = node.engine.getContainer(id);
    if (names[0] !== `/${name}`) await unless([404, 409], container.rename({ name }));
    node.log(`${name} of ${labels[LABEL.name]} was to be started anew and is started now.`);
    await unless([404], startContainer(node, id));
  }
}
