import type { PortRange } from '#kernel/port-range.ts';
import type { Cgroups } from '#runtimes/host/cgroups.ts';
import type { ImageStore } from '#runtimes/host/images.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import type { Machine } from '#runtimes/host/machine.ts';
import type { InstanceNetwork } from '#runtimes/host/network/network.ts';
import type { MachinePrograms } from '#runtimes/host/programs/programs.ts';
import type { PublishedPorts } from '#runtimes/host/publish/published-ports.ts';
import type { Releases } from '#runtimes/host/releases.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';
import type { FormerLogs } from '#runtimes/tools/former-logs.ts';
import type { Router } from '#runtimes/router.ts';

/** Objects that the parts of the host runtime share. */
export interface HostParts {
  machine: Machine;
  layout: Layout;
  images: ImageStore;
  programs: MachinePrograms;
  releases: Releases;
  network: InstanceNetwork;
  cgroups: Cgroups;
  published: PublishedPorts;
  /** Logs of instances that were removed. */
  formerLogs: FormerLogs;
  /** Disk that one build may take; undefined for no limit. */
  buildDisk: DiskLimits | undefined;
  /** Ports on which services may be published; null allows every port. */
  publishedRange: PortRange | null;
  router: Router;
  /** Id of this installation, used in the names of its control groups and networks. */
  installation: string;
  /** Identifier of the machine's present boot. */
  bootId: string;
}
