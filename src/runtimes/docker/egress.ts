import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { RuntimeContext, TaskSpec, WorkloadIdentity } from '#runtimes/runtime.ts';
import { EGRESS_PROGRAM, egressFiles } from '#runtimes/tools/egress/files.ts';
import type { EgressProgram } from '#runtimes/tools/egress/program.ts';
import { LISTENS } from '#runtimes/tools/egress/rules.ts';
import { freeAddress } from './address-pool.ts';
import { unless } from './errors.ts';
import { removeInstance } from './instances.ts';
import { LABEL, egressName, environmentLabels, identityLabels } from './labels.ts';
import { chooseAddress, createNetwork, ensureNetwork } from './network.ts';
import type { DockerNode } from './node.ts';
import { ensureHelperImage } from './pull.ts';
import { findContainers, findNetworks } from './search.ts';
import { TaskLog } from './task-log.ts';

export const DEFAULT_EGRESS_IMAGE = 'node:24-alpine';

const PORT = 3128;
/** Prefix length with room for two: the proxy and the execution behind it. */
const PREFIX = 29;
const MEMORY = 128 * 2 ** 20;
const FOLDER = 'quarterdeck-egress';
const NOBODY = '65534:65534';
const LOOK_MS = 100;
const READY_MS = 30_000;

/** Network location of an execution that reaches the outside through a proxy only. */
export interface WayOut {
  network: string;
  address: string;
  proxyAddress: string;
}

/**
 * Creates the egress of an execution that has not begun. It is a network that leads nowhere, on which not even this machine has an address,
 * and a container on it and on the environment's network that forwards to listed hosts (docs/decisions/0019). Leftovers of an earlier
 * attempt are removed first.
 */
export async function makeWayOut(node: DockerNode, spec: TaskSpec, context: RuntimeContext): Promise<WayOut> {
  const { product } = await node.about();
  if (product !== 'Docker Engine')
    throw new RuntimeError('refused', `${product} has no networks that this machine is not on: use a Docker Engine.`);
  const image = await ensureHelperImage(node, node.egressImage, context);
  const outer = await ensureNetwork(node, spec.identity);
  await removeAll(node, labelsOf(spec), () => true);
  const { way, proxy } = await node.environments.run(spec.identity.environmentId, async () => {
    context.signal.throwIfAborted();
    const name = egressName(spec);
    const labels = { ...environmentLabels(spec.identity), ...labelsOf(spec) };
    const subnet = await createNetwork(
      node,
      // The second option keeps the bridge without an address of this machine: otherwise its listening ports would be reachable.
      { Name: name, Labels: labels, Internal: true, Options: { 'com.docker.network.bridge.inhibit_ipv4': 'true' } },
      PREFIX,
    );
    const proxyAddress = freeAddress(subnet, new Set())!;
    const address = freeAddress(subnet, new Set([proxyAddress]))!;
    const outside = await chooseAddress(node, outer);
    const made = await node.engine.createContainer(proxyOptions(spec, { image, network: name, proxyAddress, outside }));
    const endpoint = { IPAMConfig: { IPv4Address: outside } };
    await node.engine.getNetwork(outer.id).connect({ Container: made.id, EndpointConfig: endpoint });
    return { proxy: made, way: { network: name, address, proxyAddress } };
  });
  await proxy.putArchive(await archiveOf({ ...spec.egress!, address: way.proxyAddress, port: PORT }), { path: '/' });
  await proxy.start();
  await awaitReady(proxy, context);
  return way;
}

const labelsOf = ({ identity, name }: TaskSpec) => ({
  [LABEL.service]: identity.serviceId,
  [LABEL.generation]: String(identity.generation),
  [LABEL.egress]: name,
});

interface ProxyPlace {
  image: string;
  network: string;
  proxyAddress: string;
  outside: string;
}

const proxyOptions = (spec: TaskSpec, place: ProxyPlace): Docker.ContainerCreateOptions => ({
  name: egressName(spec),
  Image: place.image,
  Entrypoint: ['node', '--disable-warning=ExperimentalWarning', EGRESS_PROGRAM, 'egress.json'],
  Cmd: [],
  User: NOBODY,
  WorkingDir: `/${FOLDER}`,
  Healthcheck: { Test: ['NONE'] },
  Labels: {
    ...identityLabels(spec.identity, spec.identity.generation),
    ...labelsOf(spec),
    [LABEL.address]: place.outside,
  },
  NetworkingConfig: { EndpointsConfig: { [place.network]: { IPAMConfig: { IPv4Address: place.proxyAddress } } } },
  HostConfig: {
    NetworkMode: place.network,
    RestartPolicy: { Name: 'unless-stopped' },
    Memory: MEMORY,
    MemorySwap: MEMORY,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '2' } },
  },
});

async function archiveOf(program: EgressProgram): Promise<Readable> {
  const archive = pack();
  const files = [...(await egressFiles()), { path: 'egress.json', content: JSON.stringify(program) }];
  for (const { path, content } of files) archive.entry({ name: `${FOLDER}/${path}`, mode: 0o444 }, content);
  archive.finalize();
  return Readable.from(archive);
}

/** Waits for the first line of the proxy, which it writes when it listens. */
async function awaitReady(proxy: Docker.Container, { signal }: RuntimeContext): Promise<void> {
  for (const end = Date.now() + READY_MS; ;) {
    signal.throwIfAborted();
    const said = await proxy.logs({ stdout: true, stderr: true, tail: 20, follow: false });
    if (said.includes(LISTENS)) return;
    const { State: state, RestartCount: restarts } = await proxy.inspect();
    if (Date.now() > end || restarts > 0 || !state.Running)
      throw new RuntimeError('failed', `The proxy of the sandbox does not start: ${said.toString('utf8').slice(-500)}`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Proxy URL for the execution. */
export const proxyUrl = ({ proxyAddress }: WayOut): string => `http://${proxyAddress}:${PORT}`;

/** Network options for an execution's container: nothing but the proxy answers it, not even for names. */
export const behindProxy = (way: WayOut) => ({
  NetworkMode: way.network,
  Dns: [way.proxyAddress],
  // No DNS server answers there: short time-outs make lookups fail soon.
  DnsOptions: ['timeout:1', 'attempts:1'],
  // With raw sockets a program could forge the address of another host on the network.
  CapDrop: ['NET_RAW'],
  SecurityOpt: ['no-new-privileges'],
});

/**
 * Forwards the output of an execution's proxy while `work` waits for the end, then ends the proxy. The proxy keeps running if the end is
 * not known.
 */
export async function tellingProxy<T>(
  node: DockerNode,
  spec: TaskSpec,
  context: RuntimeContext,
  work: () => Promise<T>,
): Promise<T> {
  const [found] = await findContainers(node, labelsOf(spec));
  if (!found) return work();
  const proxy = node.engine.getContainer(found.Id);
  const over = new AbortController();
  const log = new TaskLog(proxy, (line) => context.log(line));
  const telling = tell(proxy, log, over.signal);
  try {
    const end = await work();
    await unless([304, 404], proxy.stop({ t: 1 }));
    await telling;
    return end;
  } finally {
    over.abort();
    await telling;
  }
}

/**
 * Forwards the proxy's lines until it ends. A lost connection to the engine is not reported here: the caller that waits for the execution
 * reports it.
 */
async function tell(proxy: Docker.Container, log: TaskLog, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const isRead = await log.tell(signal).then(
      () => true,
      () => false,
    );
    const state = await unless([404], proxy.inspect()).catch(() => undefined);
    if (isRead && (state === null || state?.State.Running === false)) return;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Removes the proxies and networks of a service's executions: all of them, or those with these names. Absent ones are no error. */
export async function removeWaysOut(
  node: DockerNode,
  { serviceId }: Pick<WorkloadIdentity, 'serviceId'>,
  names: string[] | 'all',
): Promise<boolean> {
  return removeAll(node, { [LABEL.service]: serviceId }, (name) => names === 'all' || names.includes(name));
}

async function removeAll(
  node: DockerNode,
  labels: Record<string, string>,
  isMeant: (name: string) => boolean,
): Promise<boolean> {
  const isOne = ({ Labels: all }: { Labels?: Record<string, string> }) => {
    const name = all?.[LABEL.egress];
    return name !== undefined && isMeant(name);
  };
  const proxies = (await findContainers(node, labels)).filter(isOne);
  await Promise.all(proxies.map(({ Id: id }) => removeInstance(node, id)));
  const networks = (await findNetworks(node, labels)).filter(isOne);
  for (const { Id: id } of networks) await unless([404], node.engine.getNetwork(id).remove());
  return proxies.length + networks.length > 0;
}
