import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroups } from '#runtimes/host/cgroups.ts';
import { HostRuntime } from '#runtimes/host/host-runtime.ts';
import { ImageStore } from '#runtimes/host/images.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { findMachine, type Machine } from '#runtimes/host/machine.ts';
import { findProgram } from '#runtimes/tools/find-program.ts';
import { findFirewall } from '#runtimes/host/network/firewall.ts';
import { MachineNetwork } from '#runtimes/host/network/machine-network.ts';
import { NamespaceNetwork, tryNamespaceNetwork } from '#runtimes/host/network/namespace-network.ts';
import type { InstanceNetwork } from '#runtimes/host/network/network.ts';
import { MachinePrograms } from '#runtimes/host/programs/programs.ts';
import { PublishedPorts } from '#runtimes/host/publish/published-ports.ts';
import { Releases } from '#runtimes/host/releases.ts';
import { readBootId } from '#runtimes/tools/shim/identity.ts';
import type { PortRange } from '#kernel/port-range.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';
import { FormerLogs, type FormerLogLimits } from '#runtimes/tools/former-logs.ts';
import type { Router } from '#runtimes/router.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** Options of the host runtime. */
export interface HostRuntimeOptions {
  /** Data folder of the installation; the runtime's files lie below `host`, `images` and `volumes` in it. */
  dataDir: string;
  /** Id of this installation. */
  installation: string;
  router: Router;
  log(line: string): void;
  /** Mode of the runtime: `plain` uses no namespaces even if the machine supports them. */
  mode?: 'auto' | 'plain';
  /** Network of the instances: `machine` shares the machine's network even if instances could have their own. */
  network?: 'auto' | 'machine';
  /** Further folders and files to hide from workloads (keys, settings). */
  hidden?: string[];
  /** Folder of PostgreSQL's binaries for databases; none if absent. */
  postgresql?: string | null;
  /** Number of processes and threads that one instance may have, if control groups are writable; 1024 if absent. */
  processLimit?: number;
  /** Limits of the logs of ended instances; none is kept if absent. */
  formerLogs?: FormerLogLimits;
  /** Disk that one build may take; no limit if absent. */
  buildDisk?: DiskLimits;
  /** Ports on which services may be published; every port if absent. */
  publishedPorts?: PortRange;
  /** Identifier of the machine's present boot; read from the machine if absent. */
  bootId?: string;
}

/** Creates the runtime that runs workloads directly on this machine; determines by trying what the machine supports. */
export async function createHostRuntime(options: HostRuntimeOptions): Promise<Runtime> {
  mkdirSync(join(options.dataDir, 'host'), { recursive: true, mode: 0o700 });
  const dataDir = realpathSync(options.dataDir);
  const machine = await findMachine({ dataDir, mode: options.mode ?? 'auto', hidden: options.hidden ?? [] });
  if (machine.mode === 'plain') options.log(`host runtime: no namespaces (${machine.reason}), plain folders are used`);
  const layout = new Layout(dataDir);
  const bootId = options.bootId ?? readBootId();
  return new HostRuntime({
    machine,
    layout,
    images: new ImageStore(dataDir),
    programs: new MachinePrograms({
      machine,
      postgresql: options.postgresql ?? null,
      directory: join(dataDir, 'host'),
    }),
    releases: new Releases(layout),
    network: await findNetwork(options, machine, layout),
    cgroups: findCgroups(`quarterdeck-${options.installation.slice(0, 8)}`, options.processLimit),
    formerLogs: findFormerLogs(options, layout),
    buildDisk: options.buildDisk,
    router: options.router,
    installation: options.installation,
    published: new PublishedPorts(layout, machine, bootId),
    publishedRange: options.publishedPorts ?? null,
    bootId,
  });
}

const findFormerLogs = ({ formerLogs: limits, log }: HostRuntimeOptions, layout: Layout): FormerLogs =>
  new FormerLogs(
    limits
      ? {
          limits,
          folderOf: (serviceId) => layout.formerLogs(serviceId),
          services: () => layout.services(),
          log,
        }
      : null,
  );

/** Returns a network with a namespace for each instance if that works, otherwise the machine's own. */
async function findNetwork(options: HostRuntimeOptions, machine: Machine, layout: Layout): Promise<InstanceNetwork> {
  const { ip, nsenter } = machine.tools;
  if (machine.mode === 'plain' || options.network === 'machine' || ip === null) return new MachineNetwork(layout);
  const problem = await tryNamespaceNetwork(ip, machine.asRoot);
  if (problem !== null) {
    options.log(`host runtime: instances share the network of the machine (${problem})`);
    return new MachineNetwork(layout);
  }
  const firewall = await findFirewall(findProgram('iptables'));
  return new NamespaceNetwork({ layout, installation: options.installation, tools: { ip, nsenter }, firewall });
}
