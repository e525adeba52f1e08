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
import type { Router } from '#runtimes/router.ts';
import type { Runtime } from '#runtimes/runtime.ts';

/** What the host runtime is made with. */
export interface HostRuntimeOptions {
  /** Folder of our data; everything of the runtime lies below `host`, `images` and `volumes` in it. */
  dataDir: string;
  /** Id of this installation. */
  installation: string;
  router: Router;
  log(line: string): void;
  /** `plain` uses no namespaces even where there are some. */
  mode?: 'auto' | 'plain';
  /** `machine` shares the machine's network even where instances could have their own. */
  network?: 'auto' | 'machine';
  /** Further folders and files that no workload may see (keys, settings). */
  hidden?: string[];
  /** Folder of PostgreSQL's binaries that databases run with; none without. */
  postgresql?: string | null;
  /** Processes and threads that one instance may have, where control groups can be written; 1024 without. */
  processLimit?: number;
  /** Disk that one build may take; no limit without. */
  buildDisk?: DiskLimits;
  /** Ports on which services may be published; every one without. */
  publishedPorts?: PortRange;
  /** Name of this run of the machine; found out where it isn't given. */
  bootId?: string;
}

/** Makes the runtime that runs workloads on this machine itself; finds out by trying what the machine can do. */
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
    buildDisk: options.buildDisk,
    router: options.router,
    installation: options.installation,
    published: new PublishedPorts(layout, machine, bootId),
    publishedRange: options.publishedPorts ?? null,
    bootId,
  });
}

/** A network namespace for each instance where that works, else the machine's own. */
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
