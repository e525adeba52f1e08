import type Docker from 'dockerode';
import type { RouteEntry } from '#runtimes/router.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { upstreamOf } from './container-config.ts';
import type { Endpoints, Replaced } from './container-config.ts';
import { unless } from './errors.ts';
import { LABEL, networkName } from './labels.ts';
import type { DockerNode } from './node.ts';
import type { Release } from './release.ts';
import { findContainers } from './search.ts';

/** A container of a service. */
export interface Instance {
  id: string;
  name: string;
  generation: number;
  /** Its number within the generation. */
  number: number;
  /** Generation of the deployment that it was made for: its own, or that of the restart. */
  asked: number;
  /** Attempt at that deployment which made it. */
  attempt: number;
  configHash: string;
  state: Docker.ContainerInspectInfo['State'];
  /** How often the engine started it again. */
  restarts: number;
  endpoints: Endpoints;
  /** Whether it is connected to its environment's network. */
  connected: boolean;
  /** Whether siblings resolve the service's host name to it: it was ready once. */
  named: boolean;
  labels: Record<string, string>;
  /** Null where it was never started anew from its image. */
  replaced: Replaced | null;
  /** As the engine has it: what a restart makes the next one from. */
  inspected: Docker.ContainerInspectInfo;
}

type ServiceKey = Pick<WorkloadIdentity, 'serviceId'>;

/** All containers of a service, lowest generation and number first; helpers of ours that never run are left out. */
export async function listInstances(node: DockerNode, identity: ServiceKey): Promise<Instance[]> {
  const containers = await findContainers(node, { [LABEL.service]: identity.serviceId });
  const instances = containers.filter((container) => container.Labels[LABEL.instance] !== undefined);
  // A list lacks what matters here (aliases, restarts); those that vanish meanwhile are left out.
  const found = await Promise.all(instances.map(({ Id: id }) => findInstance(node, id)));
  return found
    .filter((instance) => instance !== null)
    .toSorted((one, other) => one.generation - other.generation || one.number - other.number);
}

/** One instance by its container's id, null when it is gone or no instance of ours. */
export async function findInstance(node: DockerNode, id: string): Promise<Instance | null> {
  const inspected = await unless([404], node.engine.getContainer(id).inspect());
  const labels = inspected?.Config.Labels ?? {};
  if (!inspected || labels[LABEL.installation] !== node.installation || labels[LABEL.instance] === undefined)
    return null;
  const endpoint = inspected.NetworkSettings.Networks[networkName(labels[LABEL.environment]!)];
  return {
    id,
    name: inspected.Name.slice(1),
    generation: Number(labels[LABEL.generation]),
    number: Number(labels[LABEL.instance]),
    asked: Number(labels[LABEL.restart] ?? labels[LABEL.generation]),
    attempt: Number(labels[LABEL.attempt] ?? 0),
    configHash: labels[LABEL.config]!,
    state: inspected.State,
    restarts: inspected.RestartCount,
    endpoints: JSON.parse(labels[LABEL.endpoints]!) as Endpoints,
    connected: endpoint !== undefined,
    named: (endpoint?.Aliases as string[] | null | undefined)?.includes(labels[LABEL.hostname]!) ?? false,
    labels,
    replaced: replacedFrom(labels[LABEL.replaced]),
    inspected,
  };
}

const replacedFrom = (label: string | undefined): Replaced | null =>
  label === undefined ? null : (JSON.parse(label) as Replaced);

export const isUp = (instance: Instance): boolean => instance.state.Running || instance.state.Restarting;

/** Ends an instance (SIGTERM, after the grace period SIGKILL); one that doesn't run or isn't there is done. */
export async function stopInstance(node: DockerNode, instance: Instance, graceSeconds: number): Promise<void> {
  await unless([304, 404], node.engine.getContainer(instance.id).stop({ t: graceSeconds }));
}

/** Ends instances that nothing may run beside, and sees that they have ended. Throws RuntimeError `failed` where one has not. */
export async function endInstances(node: DockerNode, instances: Instance[], graceSeconds: number): Promise<void> {
  await Promise.all(instances.map((instance) => stopInstance(node, instance, graceSeconds)));
  const now = await Promise.all(instances.map(({ id }) => findInstance(node, id)));
  const left = now.filter((instance) => instance !== null && isUp(instance));
  if (left.length > 0)
    throw new RuntimeError(
      'failed',
      `${left.map((instance) => instance!.name).join(', ')} did not end within ${graceSeconds} s and its SIGKILL: nothing is started beside it.`,
    );
}

/** Starts a container; one that runs is left alone. */
export async function startContainer(node: DockerNode, id: string): Promise<void> {
  await unless([304], node.engine.getContainer(id).start());
}

/** Removes an instance with its anonymous volumes, running or not. 409 means that its removal is under way: wait for it. */
export async function removeInstance(node: DockerNode, id: string): Promise<void> {
  const container = node.engine.getContainer(id);
  if ((await unless([404, 409], container.remove({ force: true, v: true }))) === null)
    await unless([404], container.wait({ condition: 'removed' }));
}

/** The routes of a release to the given instances. Throws RuntimeError when a route names no HTTP or GRPC port. */
export function routesTo(
  release: Pick<Release, 'ports' | 'routes'>,
  instances: Pick<Instance, 'endpoints'>[],
): RouteEntry[] {
  return release.routes.map((route) => {
    const port = release.ports.find((candidate) => candidate.id === route.portId);
    if (port?.protocol !== 'HTTP' && port?.protocol !== 'GRPC')
      throw new RuntimeError(
        'refused',
        `The route ${route.host} leads to port ${route.portId}, which is no HTTP or GRPC port.`,
      );
    const upstreams = instances.flatMap((instance) => upstreamOf(instance.endpoints, port.internalPort) ?? []);
    const { host, certificate } = route;
    return { host, protocol: port.protocol, upstreams, ...(certificate ? { certificate } : {}) };
  });
}
