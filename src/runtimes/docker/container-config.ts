import type Docker from 'dockerode';
import type { Upstream } from '#runtimes/router.ts';
import type { InstanceExit, Probe, ProgramSpec, WorkloadPort, WorkloadSpec } from '#runtimes/runtime.ts';
import { LABEL, carriedLabels, containerName, identityLabels, volumeName } from './labels.ts';
import { fileMounts } from './files.ts';
import { isPinned } from './references.ts';
import { publishedPorts } from './release.ts';

/** What is decided when a container is made and fixed for its life: where it stands, and whose it is. */
export interface Placement {
  instance: number;
  /** Attempt at the deployment that makes it. */
  attempt: number;
  network: string;
  /** Its address in the network. */
  address: string;
  /** Null where the control plane reaches that address; else where its ports are published, by internal port. */
  published: Record<number, Upstream> | null;
}

/** How the control plane reaches an instance, by internal port; `*` stands for every port. */
export type Endpoints = Record<string, Upstream>;

export const LOOPBACK = '127.0.0.1';
const MIB = 2 ** 20;
/** A program that is set-uid in an image gives nobody more than they have. */
const NO_NEW_PRIVILEGES = ['no-new-privileges'];
/** The engine takes no lower limit, and none above the machine's number of CPUs. */
const LEAST_CPU_MILLI = 10;
/** Kept output of an instance: the last 30 MB. Without a limit the engine fills the disk. */
const LOG_CONFIG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } };

/** Ports that the control plane itself must reach: those that the proxy leads to and those that are probed. */
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

/** Where the control plane reaches a port of an instance, null if it is none that was published. */
export function upstreamOf(endpoints: Endpoints, internalPort: number): Upstream | null {
  const any = endpoints['*'];
  return any ? { address: any.address, port: internalPort } : (endpoints[String(internalPort)] ?? null);
}

/** What containers of instances and of executions have in common. Values go over the socket, never onto a command line. */
export function programOptions(spec: ProgramSpec, image: { id: string; cpus: number; processes: number }) {
  return {
    Image: image.id,
    ...(spec.entrypoint.length > 0 ? { Entrypoint: spec.entrypoint } : {}),
    ...(spec.arguments.length > 0 ? { Cmd: spec.arguments } : {}),
    Env: Object.entries(spec.environment).map(([key, value]) => `${key}=${value}`),
    // Our own probes decide; the image's would run besides and nobody would listen to it.
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

/** What the engine is asked to make for one instance of a spec. */
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
  // On loopback where the engine is on this machine; an engine elsewhere must be reached from here.
  for (const [internalPort, { address, port }] of Object.entries(placement.published ?? {}))
    add(`${internalPort}/tcp`, address === LOOPBACK ? LOOPBACK : '', port);
  return bindings;
}

/** The volumes that we mounted, not those that the image itself makes anew for each container. */
const ownMounts = (mounts: Docker.ContainerInspectInfo['Mounts']): Docker.MountConfig =>
  mounts
    .filter((mount) => mount.Type === 'volume' && mount.Name?.startsWith('qd-'))
    .map((mount) => ({ Type: 'volume', Source: mount.Name!, Target: mount.Destination, ReadOnly: !mount.RW }));

/** Labels without what is of one container's life. */
function freshLabels(labels: Record<string, string>): Record<string, string> {
  const { [LABEL.replaced]: _replaced, ...kept } = labels;
  return kept;
}

/** The same container once more for the restart that the deployment `asked` wants: all of its configuration, in another place. */
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

/** Instance as far as the next one in its place is made from it. */
interface Replaceable {
  inspected: Docker.ContainerInspectInfo;
  labels: Record<string, string>;
  /** Whether siblings resolve the service's host name to it. */
  named: boolean;
}

/** How often an instance was started anew from its image, and how the one before it ended. */
export interface Replaced {
  times: number;
  exit: InstanceExit;
}

/** The same container once more, at the same place, from its image alone. */
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
    // Siblings resolve the service's name to it as they do to one whose process is started again.
    NetworkingConfig: {
      EndpointsConfig: { [host.NetworkMode!]: { ...address, Aliases: named ? [labels[LABEL.hostname]!] : [] } },
    },
    HostConfig: { NetworkMode: host.NetworkMode, PortBindings: host.PortBindings, ...keptHostConfig(original) },
  };
}

/** What a container keeps of another one's configuration, wherever it stands. */
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
