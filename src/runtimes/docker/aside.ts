import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { anySignal } from '#kernel/lease-signal.ts';
import { isOwnerGone, OWNED_SECONDS, ownMark } from '#runtimes/tools/owner.ts';
import { RuntimeError, type AsideRequest, type ExecEnd, type Handle } from '#runtimes/runtime.ts';
import { ownMounts } from './container-config.ts';
import { engineMessage, statusOf } from './errors.ts';
import { carryStreams, runInContainer } from './exec.ts';
import { isFileVolume, linkFiles } from './files.ts';
import { listInstances, removeInstance, type Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import { chooseAddress, ensureNetwork, removeNetworkIfLast } from './network.ts';
import type { DockerNode } from './node.ts';
import { findContainers } from './search.ts';

const MIB = 2 ** 20;

/** Labels of an instance that stand for what an additional one is not: it serves nothing and is not watched. */
const OF_INSTANCES = ['instance', 'attempt', 'hostname', 'config', 'endpoints', 'liveness', 'restart'] as const;

/** Runs a program in an additional container of the present release, which goes when the program ends (`Runtime.execAside`). */
export async function execAside(
  node: DockerNode,
  handle: Handle,
  request: AsideRequest,
  caller: AbortSignal,
): Promise<ExecEnd> {
  const signal = anySignal([caller, AbortSignal.timeout(OWNED_SECONDS * 1000)]);
  signal.throwIfAborted();
  const { generation, environmentId } = handle.identity;
  const instances = await listInstances(node, handle.identity);
  // A release that crashes has instances as well: looking at it is what an additional one is for.
  const original = instances.findLast((one) => one.generation === generation);
  if (!original) throw new RuntimeError('failed', 'No instance of the service is there to be copied: deploy it.');
  const container = await make(node, handle, original, request);
  try {
    await linkFiles(container, JSON.parse(original.labels[LABEL.files] ?? '[]') as string[]);
    if (!request.runsRelease) return await runAsMain(container, request, signal);
    await container.start();
    return await runInContainer(node, container, request, signal);
  } finally {
    await removeInstance(node, container.id);
    await removeNetworkIfLast(node, environmentId);
  }
}

function make(node: DockerNode, handle: Handle, original: Instance, request: AsideRequest): Promise<Docker.Container> {
  return node.environments.run(handle.identity.environmentId, async () => {
    const network = await ensureNetwork(node, handle.identity);
    const place = { network: network.name, address: await chooseAddress(node, network) };
    return node.engine.createContainer(asideOptions(original, request, place));
  });
}

/** The container of an instance once more, without what others reach or write: no aliases, ports, volumes of storage or probes. */
function asideOptions(
  original: Instance,
  request: AsideRequest,
  place: { network: string; address: string },
): Docker.ContainerCreateOptions {
  const { Config: config, HostConfig: host, Image: image, Mounts: mounts } = original.inspected;
  const { cpuMilli, memoryMib } = request.resources;
  const memory = memoryMib === undefined ? host.Memory : memoryMib * MIB;
  const dropped: string[] = OF_INSTANCES.map((name) => LABEL[name]);
  const labels = Object.entries(config.Labels).filter(([key]) => !dropped.includes(key));
  const name = `${original.labels[LABEL.hostname]}-${original.generation}-${request.name}`;
  return {
    name,
    Hostname: name.slice(0, 63),
    Image: image,
    ...(request.runsRelease ? { Entrypoint: config.Entrypoint as string[], Cmd: config.Cmd } : programOf(request)),
    Env: [...config.Env, ...Object.entries(request.environment).map(([key, value]) => `${key}=${value}`)],
    Healthcheck: { Test: ['NONE'] },
    StopTimeout: Number(config.Labels[LABEL.grace]),
    Labels: {
      ...Object.fromEntries(labels),
      [LABEL.aside]: request.name,
      [LABEL.owner]: ownMark(),
      [LABEL.address]: place.address,
    },
    NetworkingConfig: { EndpointsConfig: { [place.network]: { IPAMConfig: { IPv4Address: place.address } } } },
    HostConfig: {
      NetworkMode: place.network,
      RestartPolicy: { Name: 'no' },
      NanoCpus: cpuMilli === undefined ? host.NanoCpus : cpuMilli * 1e6,
      Memory: memory,
      MemorySwap: memory,
      Mounts: ownMounts(mounts).filter(({ Source: source }) => isFileVolume(source)),
      LogConfig: host.LogConfig,
      PidsLimit: host.PidsLimit,
      SecurityOpt: host.SecurityOpt,
    },
  };
}

/** The program in place of the release's. */
const programOf = ({ command, terminal, stdin }: AsideRequest) => ({
  Entrypoint: command.slice(0, 1),
  Cmd: command.slice(1),
  Tty: terminal !== undefined,
  OpenStdin: stdin !== undefined,
  StdinOnce: true,
});

async function runAsMain(container: Docker.Container, request: AsideRequest, signal: AbortSignal): Promise<ExecEnd> {
  const { terminal } = request;
  const stream = (await container.attach({
    stream: true,
    hijack: true,
    stdin: request.stdin !== undefined,
    stdout: true,
    stderr: true,
    abortSignal: signal,
  })) as Duplex;
  const begin = async () => {
    try {
      await container.start();
    } catch (error) {
      // 400 and 404: there is no such program in the image, or it cannot be run.
      const status = statusOf(error);
      if (status !== 400 && status !== 404) throw error;
      throw new RuntimeError('failed', `${request.command[0]} cannot be started: ${engineMessage(error)}`);
    }
    if (terminal) await container.resize({ h: terminal.rows, w: terminal.columns });
  };
  const stderr = await carryStreams(stream, request, signal, begin);
  const { StatusCode: exitCode } = (await container.wait({ abortSignal: signal })) as { StatusCode: number };
  return { exitCode, stderr };
}

/** Removes additional containers whose process is gone. */
export async function removeAbandonedAsides(node: DockerNode): Promise<void> {
  for (const { Id: id, Labels: labels, Created: created } of await findContainers(node)) {
    const owner = labels[LABEL.owner];
    if (owner === undefined || !isOwnerGone(owner, new Date(created * 1000))) continue;
    await removeInstance(node, id);
    await removeNetworkIfLast(node, labels[LABEL.environment]!);
  }
}
