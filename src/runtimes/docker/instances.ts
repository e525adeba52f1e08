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
  /** Number of the instance within its generation. */
  number: number;
  /** Generation of the deployment that it was made for: its own, or the generation of the restart. */
  asked: number;
  /** Attempt at that deployment. */
  attempt: number;
  configHash: string;
  state: Docker.ContainerInspectInfo['State'];
  /** Number of restarts by the engine. */
  restarts: number;
  endpoints: Endpoints;
  /** True if the instance is connected to its environment's network. */
  connected: boolean;
  /** True if siblings resolve the service's host name to the instance: it was ready once. */
  named: boolean;
  labels: Record<string, string>;
  /** Replacements from the image; null if there was none. */
  replaced: Replaced | null;
  /** Inspection by the engine; `restart` makes the next container from it. */
  inspected: Docker.ContainerInspectInfo;
}

type ServiceKey = Pick<WorkloadIdentity, 'serviceId'>;

/** Returns all containers of a service, lowest generation and number first; helpers that never run are left out. */
export async function listInstances(node: DockerNode, identity: ServiceKey): Promise<Instance[]> {
  const containers = await findContainers(node, { [LABEL.service]: identity.serviceId });
  const instances = containers.filter((container) => container.Labels[LABEL.instance] !== undefined);
  // A list lacks aliases and restart counts; containers that vanish meanwhile are left out.
  const found = await Promise.all(instances.map(({ Id: id }) => findInstance(node, id)));
  return found
    .filter((instance) => instance !== null)
    .toSorted((one, other) => one.generation - other.generation || one.number - other.number);
}

/** Returns the instance with a container id; null if it is gone, or not an instance of this installation. */
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

/** Stops an instance (SIGTERM, after the grace period SIGKILL); a stopped or missing one is no error. */
export async function stopInstance(node: DockerNode, instance: Instance, graceSeconds: number): Promise<void> {
  await unless([304, 404], node.engine.getContainer(instance.id).stop({ t: graceSeconds }));
}

/** Stops instances that must not run beside others, and verifies it. Throws RuntimeError `failed` if one still runs. */
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

/** Starts a container; a running one is left alone. */
export async function startContainer(node: DockerNode, id: string): Promise<void> {
  await unless([304], node.engine.getContainer(id).start());
}

/** Removes an instance with its anonymous volumes, running or not. 409 means that its removal is under way: it is awaited. */
export async function removeInstance(node: DockerNode, id: string): Promise<void> {
  const container = node.engine.getContainer(id);
  if ((await unless([404, 409], container.remove({ force: true, v: true }))) === null)
    await unless([404], container.wait({ condition: 'removed' }));
}

/** Returns the routes of a release to the given instances. Throws RuntimeError if a route names no HTTP or GRPC port. */
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
