import { attemptNumber } from '#runtimes/attempt.ts';
import { rangeRefusals, RuntimeError } from '#runtimes/runtime.ts';
import type { Handle, RuntimeContext, WorkloadSpec } from '#runtimes/runtime.ts';
import { cloneOptions, containerOptions } from './container-config.ts';
import { ensureVolumes } from './files.ts';
import { isUp, listInstances } from './instances.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import type { DockerNode } from './node.ts';
import { ensureImage } from './pull.ts';
import { refusals } from './refusals.ts';
import { releaseFrom, releaseOf } from './release.ts';
import { rollOut } from './rollout.ts';
import { secretValues } from './secret-values.ts';

/** Applies a spec (`Runtime.submit`). */
export async function applySpec(node: DockerNode, spec: WorkloadSpec, context: RuntimeContext): Promise<Handle> {
  context.signal.throwIfAborted();
  const refused = [...refusals(spec), ...rangeRefusals(spec, node.publishedPorts)];
  if (refused.length > 0) throw new RuntimeError('refused', refused.join(' '));
  const { cpus } = await node.about();
  refuseSuperseded(spec, await listInstances(node, spec.identity));
  const imageId = await ensureImage(node, spec, context);
  // Pulling takes time: the present instances are listed after it.
  const present = await listInstances(node, spec.identity);
  refuseSuperseded(spec, present);
  const release = releaseOf(spec, imageId);
  const image = { id: imageId, configHash: release.configHash, cpus, processes: node.processLimit };
  const attempt = attemptNumber(context);
  return rollOut(
    node,
    {
      identity: spec.identity,
      asked: spec.identity.generation,
      attempt,
      release,
      present,
      adopted: sameRelease(present, spec.identity.generation, release.configHash)
        .filter((one) => one.connected && isAdoptable(one, attempt))
        .slice(0, release.wanted),
      optionsFor: (placement) => containerOptions(spec, image, placement),
      prepare: () => ensureVolumes(node, spec, imageId),
      filePaths: spec.files.map((file) => file.path),
      secrets: spec.secrets,
    },
    context,
  );
}

function refuseSuperseded(spec: WorkloadSpec, present: Instance[]): void {
  const newest = present.at(-1);
  if (newest && newest.generation > spec.identity.generation)
    throw new RuntimeError(
      'superseded',
      `Generation ${newest.generation} of this service is there already, ${spec.identity.generation} came too late.`,
    );
}

/** Returns instances of the same generation and configuration from an earlier or crashed call; serving instances come first. */
function sameRelease(present: Instance[], generation: number, configHash: string): Instance[] {
  return present
    .filter((one) => one.generation === generation && one.configHash === configHash && !one.state.Dead)
    .toSorted((one, other) => rank(other) - rank(one));
}

/**
 * Returns whether an attempt may adopt an instance. A candidate that is not ready yet belongs to the attempt that made it, which may still be
 * running and remove it.
 */
const isAdoptable = (instance: Instance, attempt: number): boolean => instance.named || instance.attempt === attempt;

const rank = (instance: Instance): number => (instance.named ? 2 : 0) + (isUp(instance) ? 1 : 0);

/**
 * Starts new processes of the same release (`Runtime.restart`). Everything is read from the existing containers, running or stopped,
 * because a handle holds no secrets; files lie in a volume that the new instances share.
 */
export async function restartRelease(
  node: DockerNode,
  handle: Handle,
  asked: number,
  context: RuntimeContext,
): Promise<Handle> {
  context.signal.throwIfAborted();
  const release = releaseFrom(handle);
  const present = await listInstances(node, handle.identity);
  const same = sameRelease(present, handle.identity.generation, release.configHash);
  const template = same[0];
  const attempt = attemptNumber(context);
  if (!template && release.wanted > 0)
    throw new RuntimeError('failed', 'No container of this release is left to restart: deploy the service again.');
  return rollOut(
    node,
    {
      identity: handle.identity,
      asked,
      attempt,
      release,
      present,
      // Instances that an earlier call made for the same request stay.
      adopted: same
        .filter((one) => one.labels[LABEL.restart] === String(asked) && isAdoptable(one, attempt))
        .slice(0, release.wanted),
      optionsFor: (placement) => cloneOptions(template!.inspected, placement, release.ports, asked),
      prepare: async () => undefined,
      filePaths: JSON.parse(template?.labels[LABEL.files] ?? '[]') as string[],
      secrets: template ? await secretValues(node, template) : [],
    },
    context,
  );
}
