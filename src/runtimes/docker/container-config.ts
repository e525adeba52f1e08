import type Docker from 'dockerode';
import type { Upstream } from '#runtimes/router.ts';
import type { InstanceExit, Probe, ProgramSpec, WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';
import { LABEL, carriedLabels, containerName, identityLabels, volumeName } from './labels.ts';
import { fileMounts } from './files.ts';
import { isPinned } from './references.ts';
import { publishedPorts } from './release.ts';

/** Placement of a container, fixed for its life: its instance, attempt and addresses. */
export interface Placement {
  instance: number;
  /** Attempt at the deployment that makes the container. */
  attempt: number;
  network: string;
  /** Address of the container in the network. */
  address: string;
  /** Published address of each internal port; null if the control plane reaches the container's own address. */
  published: Record<number, Upstream> | null;
}

/** Addresses at which the control plane reaches an instance, by internal port; `*` stands for every port. */
export type Endpoints = Record<string, Upstream>;

export const LOOPBACK = '127.0.0.1';
const MIB = 2 ** 20;
/** Security option: a set-uid program in an image gains no privileges. */
const NO_NEW_PRIVILEGES = ['no-new-privileges'];
/** Lowest CPU limit of the engine, in milli-CPU. It takes no limit above the machine's number of CPUs either. */
const LEAST_CPU_MILLI = 10;
/** Kept output of an instance: the last 30 MB. Without a limit the engine fills the disk. */
const LOG_CONFIG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };

/** Returns the ports that the control plane itself must reach: those behind the proxy and those that are probed. */
export function reachedPorts(
  ports: Pick<WorkloadPort, 'internalPort' | 'protocol'>[],
  probes: (Probe | null)[],
): number[] {
  const routed = ports
    .filter((port) => port.protocol === 'HTTP' || port.protocol === 'GRPC')
    .map((port) => port.internalPort);
  const probed = probes.flatMap((probe) => (probe && 'port' in probe.check ? probe.check.port : []));
  return [...new Set([...routed, ...probed])];
}

const endpointsOf = (placement: Placement): Endpoints =>
  placement.published ?? { '*': { address: placement.address, port: 0 } };

/** Returns the address at which the control plane reaches a port of an instance; null for a port that is not published. */
export function upstreamOf(endpoints: Endpoints, internalPort: number): Upstream | null {
  const any = endpoints['*'];
  return any ? { address: any.address, port: internalPort } : (endpoints[String(internalPort)] ?? null);
}

/** Options common to the containers of instances and of executions. Values go over the socket, never onto a command line. */
export function programOptions(spec: ProgramSpec, image: { id: string; cpus: number; processes: number }) {
  return {
    Image: image.id,
    ...(spec.entrypoint.length > 0 ? { Entrypoint: spec.entrypoint } : {}),
    ...(spec.arguments.length > 0 ? { Cmd: spec.arguments } : {}),
    Env: Object.entries(spec.environment).map(([key, value]) => `${key}=${value}`),
    // The spec's probes decide; the image's own check would run unused.
    Healthcheck: { Test: ['NONE'] },
    StopTimeout: spec.gracePeriodSeconds,
    Labels: {
      ...carriedLabels(spec),
      ...identityLabels(spec.identity, spec.identity.generation),
      [LABEL.name]: spec.displayName,
      [LABEL.grace]: String(spec.gracePeriodSeconds),
      ...(isPinned(spec.image) ? { [LABEL.image]: spec.image } : {}),
    },
    HostConfig: {
      NanoCpus: Math.min(Math.max(spec.resources.cpuMilli, LEAST_CPU_MILLI) * 1e6, image.cpus * 1e9),
      Memory: spec.resources.memoryMib * MIB,
      MemorySwap: spec.resources.memoryMib * MIB,
      Mounts: [...storageMounts(spec), ...fileMounts(spec)],
      LogConfig: LOG_CONFIG,
      PidsLimit: image.processes,
      SecurityOpt: NO_NEW_PRIVILEGES,
    },
  } satisfies Docker.ContainerCreateOptions;
}

/** Options for the container of one instance of a spec. */
export function containerOptions(
  spec: WorkloadSpec,
  image: { id: string; configHash: string; cpus: number; processes: number },
  placement: Placement,
): Docker.ContainerCreateOptions {
  const name = containerName(spec.hostname, spec.identity.generation, placement.instance);
  const program = programOptions(spec, image);
  return {
    name,
    Hostname: name,
    ...program,
    Labels: { ...program.Labels, ...instanceLabels(spec, image.configHash, placement) },
    ...networkOptions(placement, spec.ports),
    HostConfig: {
      NetworkMode: placement.network,
      PortBindings: portBindings(placement, spec.ports),
      // A server that ends, with whatever status, is to run again (`on-failure` would let a 0 stand), and one that we
      // stopped is to stay so when the engine restarts (`always` would start it). The engine waits 100 ms, then twice
      // as long each time up to a minute, and begins anew after 10 s of running.
      RestartPolicy: { Name: 'unless-stopped' },
      ...program.HostConfig,
    },
  };
}

const storageMounts = (spec: ProgramSpec): Docker.MountConfig =>
  spec.storage.map((volume) => ({ Type: 'volume', Source: volumeName(volume.id), Target: volume.mountPath }));

function instanceLabels(spec: WorkloadSpec, configHash: string, placement: Placement): Record<string, string> {
  const secretNames = Object.keys(spec.environment).filter((key) => spec.secrets.includes(spec.environment[key]!));
  return {
    [LABEL.hostname]: spec.hostname,
    [LABEL.config]: configHash,
    [LABEL.files]: JSON.stringify(spec.files.map((file) => file.path)),
    [LABEL.secrets]: JSON.stringify(secretNames),
    ...(spec.liveness ? { [LABEL.liveness]: JSON.stringify(spec.liveness) } : {}),
    ...placementLabels(placement),
  };
}

const placementLabels = (placement: Placement): Record<string, string> => ({
  [LABEL.instance]: String(placement.instance),
  [LABEL.attempt]: String(placement.attempt),
  [LABEL.address]: placement.address,
  [LABEL.endpoints]: JSON.stringify(endpointsOf(placement)),
});

type PublishedPort = Pick<WorkloadPort, 'internalPort' | 'externalPort' | 'protocol' | 'publiclyAccessible'>;

function networkOptions(placement: Placement, ports: PublishedPort[]): Docker.ContainerCreateOptions {
  return {
    ExposedPorts: Object.fromEntries(Object.keys(portBindings(placement, ports)).map((key) => [key, {}])),
    // No alias yet: siblings resolve the host name to this instance once it is ready.
    NetworkingConfig: { EndpointsConfig: { [placement.network]: { IPAMConfig: { IPv4Address: placement.address } } } },
  };
}

function portBindings(
  placement: Placement,
  ports: PublishedPort[],
): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  const add = (key: string, HostIp: string, HostPort: number) => {
    (bindings[key] ??= []).push({ HostIp, HostPort: String(HostPort) });
  };
  for (const port of publishedPorts(ports))
    add(`${port.internalPort}/${port.protocol.toLowerCase()}`, '', port.externalPort);
  // Loopback if the engine is on this machine; ports of a remote engine must be reachable from here.
  for (const [internalPort, { address, port }] of Object.entries(placement.published ?? {}))
    add(`${internalPort}/tcp`, address === LOOPBACK ? LOOPBACK : '', port);
  return bindings;
}

/** Volumes mounted by the runtime, without those that the image itself creates for each container. */
const ownMounts = (mounts: Docker.ContainerInspectInfo['Mounts']): Docker.MountConfig =>
  mounts
    .filter((mount) => mount.Type === 'volume' && mount.Name?.startsWith('qd-'))
    .map((mount) => ({ Type: 'volume', Source: mount.Name!, Target: mount.Destination, ReadOnly: !mount.RW }));

/** Labels without those that belong to one container's life. */
function freshLabels(labels: Record<string, string>): Record<string, string> {
  const { [LABEL.replaced]: _replaced, ...kept } = labels;
  return kept;
}

/** Options for the same container again, for the restart that the deployment `asked` requests: same configuration, new placement. */
export function cloneOptions(
  original: Docker.ContainerInspectInfo,
  placement: Placement,
  ports: PublishedPort[],
  asked: number,
): Docker.ContainerCreateOptions {
  const { Config: config } = original;
  const name = containerName(
    config.Labels[LABEL.hostname]!,
    Number(config.Labels[LABEL.generation]),
    placement.instance,
  );
  return {
    name,
    Hostname: name,
    ...keptConfig(original),
    Labels: { ...freshLabels(config.Labels), ...placementLabels(placement), [LABEL.restart]: String(asked) },
    ...networkOptions(placement, ports),
    HostConfig: {
      NetworkMode: placement.network,
      PortBindings: portBindings(placement, ports),
      ...keptHostConfig(original),
    },
  };
}

/** Parts of an instance from which its replacement is made. */
interface Replaceable {
  inspected: Docker.ContainerInspectInfo;
  labels: Record<string, string>;
  /** True if siblings resolve the service's host name to the instance. */
  named: boolean;
}

/** Number of times that an instance was replaced from its image, and the exit of its predecessor. */
export interface Replaced {
  times: number;
  exit: InstanceExit;
}

/** Options for the same container again, at the same address, from its image alone. */
export function replacementOptions(
  { inspected: original, labels, named }: Replaceable,
  replaced: Replaced,
): Docker.ContainerCreateOptions {
  const { Config: config, HostConfig: host } = original;
  const address = { IPAMConfig: { IPv4Address: labels[LABEL.address]! } };
  return {
    Hostname: config.Hostname,
    ...keptConfig(original),
    Labels: { ...labels, [LABEL.replaced]: JSON.stringify(replaced) },
    ExposedPorts: config.ExposedPorts,
    // Siblings resolve the service's name to the replacement at once, as after a restart of the process.
    NetworkingConfig: {
      EndpointsConfig: { [host.NetworkMode!]: { ...address, Aliases: named ? [labels[LABEL.hostname]!] : [] } },
    },
    HostConfig: { NetworkMode: host.NetworkMode, PortBindings: host.PortBindings, ...keptHostConfig(original) },
  };
}

/** Configuration that a replacement keeps from the original container, on any network. */
const keptConfig = ({ Image, Config: config }: Docker.ContainerInspectInfo) => ({
  Image,
  Entrypoint: config.Entrypoint as string[],
  Cmd: config.Cmd,
  Env: config.Env,
  Healthcheck: { Test: ['NONE'] },
  StopTimeout: Number(config.Labels[LABEL.grace]),
});

const keptHostConfig = ({ HostConfig: host, Mounts: mounts }: Docker.ContainerInspectInfo) => ({
  RestartPolicy: host.RestartPolicy,
  NanoCpus: host.NanoCpus,
  Memory: host.Memory,
  MemorySwap: host.MemorySwap,
  Mounts: ownMounts(mounts),
  LogConfig: host.LogConfig,
  PidsLimit: host.PidsLimit,
  SecurityOpt: host.SecurityOpt,
});
