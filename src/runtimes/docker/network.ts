import type Docker from 'dockerode';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { freeAddress, freeSubnet } from './address-pool.ts';
import { engineMessage, statusOf, unless } from './errors.ts';
import { LABEL, environmentLabels, networkName } from './labels.ts';
import type { DockerNode } from './node.ts';
import { findContainers, findNetworks } from './search.ts';

export interface EnvironmentNetwork {
  id: string;
  name: string;
  /** IPv4 network in CIDR notation. */
  subnet: string;
  /**
   * True if this process reaches container addresses: the machine has a route to the subnet. True for an engine on the
   * same Linux machine; false for Docker Desktop, rootless engines and engines elsewhere, which publish ports instead.
   */
  direct: boolean;
  /** Address of the machine in the network: the first one, unless the engine reports another. */
  gateway: string;
}

/** Number of subnets tried when the engine reports overlaps with networks that this process can't see. */
const ATTEMPTS = 20;

/** Returns the environment's network; creates it if it is missing. */
export function ensureNetwork(node: DockerNode, identity: WorkloadIdentity): Promise<EnvironmentNetwork> {
  return node.environments.run(identity.environmentId, async () => {
    const found = await findNetwork(node, identity.environmentId);
    if (found) return found;
    await refuseForeign(node, networkName(identity.environmentId));
    await createNetwork(node, { Name: networkName(identity.environmentId), Labels: environmentLabels(identity) });
    const made = await findNetwork(node, identity.environmentId);
    if (!made)
      throw new RuntimeError(
        'failed',
        `The network ${networkName(identity.environmentId)} vanished after it was made.`,
      );
    return made;
  });
}

/** Returns this machine's address in the environment's network (`Runtime.hostAddress`); an engine elsewhere has none. */
export async function findHostAddress(node: DockerNode, identity: WorkloadIdentity): Promise<string> {
  const { subnet, direct, gateway } = await ensureNetwork(node, identity);
  if (direct) return gateway;
  throw new RuntimeError(
    'refused',
    `Containers of ${subnet} reach this machine under an address that is not known here: set QUARTERDECK_TERRAFORM_STATE_URL to one that leads to it.`,
  );
}

async function findNetwork(node: DockerNode, environmentId: string): Promise<EnvironmentNetwork | null> {
  const found = await findNetworks(node, { [LABEL.environment]: environmentId });
  const network = found.find(({ Name: name }) => name === networkName(environmentId));
  if (!network) return null;
  const { Subnet: subnet, Gateway: named } = network.IPAM?.Config?.[0] ?? {};
  if (!subnet) throw new RuntimeError('failed', `The network ${network.Name} has no subnet.`);
  const direct = (await node.hostRoutes()).includes(subnet);
  const gateway = named ?? subnet.replace(/\d+\/\d+$/, (last) => String(Number.parseInt(last, 10) + 1));
  return { id: network.Id, name: network.Name, subnet, direct, gateway };
}

async function refuseForeign(node: DockerNode, name: string): Promise<void> {
  const same = await node.engine.listNetworks({ filters: { name: [name] } as never });
  if (same.some((network) => network.Name === name))
    throw new RuntimeError('refused', `A network ${name} is there that is not ours. Remove or rename it.`);
}

/** Creates a network with a free subnet, and returns the subnet. Call it within the environment's lock. */
export async function createNetwork(
  node: DockerNode,
  options: Pick<Docker.NetworkCreateOptions, 'Name' | 'Labels' | 'Internal' | 'Options'>,
  prefix?: number,
): Promise<string> {
  const used = [...(await engineSubnets(node.engine)), ...(await node.hostRoutes())];
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const subnet = freeSubnet(node.pool, used, prefix);
    if (!subnet)
      throw new RuntimeError('failed', `The address pool ${node.pool} is used up: delete environments or widen it.`);
    try {
      await node.engine.createNetwork({
        ...options,
        CheckDuplicate: true,
        Driver: 'bridge',
        IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
      });
      return subnet;
    } catch (error) {
      // Another installation may have taken the subnet meanwhile, or the engine knows of an overlap that is invisible here.
      if (!/overlap|already used|conflict/i.test(engineMessage(error))) throw error;
      used.push(subnet);
    }
  }
  throw new RuntimeError('failed', `No subnet of the address pool ${node.pool} was accepted by the engine.`);
}

async function engineSubnets(engine: Docker): Promise<string[]> {
  const networks = await engine.listNetworks();
  return networks.flatMap((network) => (network.IPAM?.Config ?? []).flatMap((config) => config.Subnet ?? []));
}

/**
 * Chooses an address for a new instance, fixed for its life: it survives restarts of the process and of the engine, so that routes stay
 * right without a watcher. Call it, and create the container, within the environment's lock.
 */
export async function chooseAddress(node: DockerNode, network: EnvironmentNetwork): Promise<string> {
  const taken = await takenAddresses(node, network);
  const address = freeAddress(network.subnet, taken, node.lastAddress.get(network.id));
  if (!address)
    throw new RuntimeError(
      'failed',
      `The environment's network ${network.subnet} has no address left for another instance.`,
    );
  node.lastAddress.set(network.id, address);
  return address;
}

async function takenAddresses(node: DockerNode, network: EnvironmentNetwork): Promise<Set<string>> {
  const [inspected, containers] = await Promise.all([
    node.engine.getNetwork(network.id).inspect() as Promise<{ Containers?: Record<string, { IPv4Address: string }> }>,
    // Stopped containers are not in the network's own list, but keep their address.
    node.engine.listContainers({ all: true, filters: { network: [network.name] } }),
  ]);
  const running = Object.values(inspected.Containers ?? {}).map((container) => container.IPv4Address.split('/')[0]!);
  // Executions that have ended never run again.
  const kept = containers.filter(({ Labels, State }) => Labels[LABEL.task] === undefined || State !== 'exited');
  const fixed = kept.flatMap((container) => container.Labels[LABEL.address] ?? []);
  return new Set([...running, ...fixed]);
}

/**
 * Changes the aliases of a running container in the network, keeping its address. The engine can only do that by reconnecting it: some 50
 * ms without a network, which established connections survive because address and MAC stay the same.
 */
export async function setAliases(
  node: DockerNode,
  network: EnvironmentNetwork,
  instance: { id: string; labels: Record<string, string> },
  aliases: string[],
): Promise<void> {
  const handle = node.engine.getNetwork(network.id);
  await handle.disconnect({ Container: instance.id, Force: false });
  await handle.connect({
    Container: instance.id,
    EndpointConfig: { IPAMConfig: { IPv4Address: instance.labels[LABEL.address] }, Aliases: aliases },
  });
}

/** Removes the environment's network if no container of the installation belongs to the environment any more. */
export async function removeNetworkIfLast(node: DockerNode, environmentId: string): Promise<void> {
  for (const reason of await removeNetworks(node, environmentId)) node.log(reason);
}

/** Removes the network of an environment that is gone. Throws RuntimeError `failed` while a container hangs on it. */
export async function removeEnvironmentNetwork(node: DockerNode, environmentId: string): Promise<void> {
  const reasons = await removeNetworks(node, environmentId);
  if (reasons.length > 0) throw new RuntimeError('failed', reasons.join(' '));
}

/**
 * Removes the environment's networks and returns why some stay. Remaining containers of the environment are no reason, foreign containers
 * on the network are.
 */
function removeNetworks(node: DockerNode, environmentId: string): Promise<string[]> {
  return node.environments.run(environmentId, async () => {
    const mine = { [LABEL.environment]: environmentId };
    if ((await findContainers(node, mine)).length > 0) return [];
    const reasons: string[] = [];
    for (const network of await findNetworks(node, mine)) {
      try {
        await unless([404], node.engine.getNetwork(network.Id).remove());
        node.lastAddress.delete(network.Id);
      } catch (error) {
        if (statusOf(error) !== 403 && statusOf(error) !== 409) throw error;
        reasons.push(`The network ${network.Name} stays: ${engineMessage(error)}`);
      }
    }
    return reasons;
  });
}
