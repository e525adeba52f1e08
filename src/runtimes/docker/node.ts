import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import type { PortRange } from '#kernel/port-range.ts';
import type { Router } from '#runtimes/router.ts';
import { parseRoutes } from './address-pool.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';
import { KeyedLock } from '#runtimes/tools/keyed-lock.ts';

/** Of the setting QUARTERDECK_PROCESS_LIMIT. */
const DEFAULT_PROCESS_LIMIT = 1024;

/** What was found out about the engine. */
export interface EngineAbout {
  product: 'Docker Engine' | 'Podman';
  version: string;
  /** BuildKit answers behind the build endpoint. */
  buildkit: boolean;
  /** Whether its builder knows here-documents in a Dockerfile. */
  hereDocuments: boolean;
  /** Of the machine, as images name it: `amd64`. */
  architecture: string;
  cpus: number;
  rootless: boolean;
  /** Whether the kernel lets the engine limit memory and CPU. */
  limitsMemory: boolean;
  limitsCpu: boolean;
  /** Folder of this machine in which the engine keeps images; null where there is none of that name. */
  storage: string | null;
}

/** One engine with what all verbs need. */
export interface DockerNode {
  engine: Docker;
  installation: string;
  router: Router;
  pool: string;
  /** Image with Node that proxies of executions run from. */
  egressImage: string;
  /** Where ports are published when container addresses can't be reached: loopback, or the address of an engine elsewhere. */
  publishAddress: string;
  /** Processes and threads that one container may have. */
  processLimit: number;
  /** Size of an image that is built, and the reserve of the engine's disk; undefined for no limit. */
  buildDisk: DiskLimits | undefined;
  /** Ports on which services may be published; null for every one. */
  publishedPorts: PortRange | null;
  /** Serialises what must not interleave in one environment: choosing addresses, making and removing its network. */
  environments: KeyedLock;
  /** Serialises what changes the instances of one service within this process. */
  services: KeyedLock;
  /** Per network: the address given out last. */
  lastAddress: Map<string, string>;
  about(): Promise<EngineAbout>;
  /** Networks that this machine has routes to, CIDR. */
  hostRoutes(): Promise<string[]>;
  /** Makes sure that liveness probes are watched. */
  supervise(): Promise<void>;
  log(line: string): void;
}

/** Asks the engine what it is. */
export async function askAbout(engine: Docker): Promise<EngineAbout> {
  const [version, info] = await Promise.all([engine.version(), engine.info()]);
  const components = (version as { Components?: { Name: string; Version: string }[] }).Components ?? [];
  const podman = components.find((component) => component.Name === 'Podman Engine');
  const security: string[] = info.SecurityOptions ?? [];
  // Sessions came with API 1.39; Podman has no BuildKit, its own builder knows the same instructions.
  const buildkit = !podman && info.OSType !== 'windows' && Number(version.ApiVersion.split('.')[1]) >= 39;
  return {
    product: podman ? 'Podman' : 'Docker Engine',
    version: podman?.Version ?? version.Version,
    buildkit,
    // The frontends in Docker Engine 23 and Podman 5 are the first that know them by themselves.
    hereDocuments: podman
      ? Number.parseInt(podman.Version, 10) >= 5
      : buildkit && Number.parseInt(version.Version, 10) >= 23,
    architecture: version.Arch,
    cpus: info.NCPU,
    rootless: security.some((option) => option.includes('name=rootless')),
    limitsMemory: info.MemoryLimit !== false,
    limitsCpu: info.CpuCfsQuota !== false,
    storage: info.DockerRootDir && existsSync(info.DockerRootDir) ? info.DockerRootDir : null,
  };
}

/** The same question, asked once until it is answered. */
function rememberAbout(engine: Docker): () => Promise<EngineAbout> {
  let known: Promise<EngineAbout> | undefined;
  return () => {
    known ??= askAbout(engine).catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}

/** The machine's own routing table; empty where there is none to read (macOS, Windows). */
async function readHostRoutes(): Promise<string[]> {
  try {
    return parseRoutes(await readFile('/proc/net/route', 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A DockerNode of these parts. */
export const makeNode = (
  engine: Docker,
  options: Pick<
    DockerNode,
    'installation' | 'router' | 'pool' | 'egressImage' | 'publishAddress' | 'log' | 'supervise'
  > &
    Partial<Pick<DockerNode, 'publishedPorts' | 'processLimit' | 'buildDisk'>>,
): DockerNode => ({
  publishedPorts: null,
  processLimit: DEFAULT_PROCESS_LIMIT,
  buildDisk: undefined,
  ...options,
  engine,
  environments: new KeyedLock(),
  services: new KeyedLock(),
  lastAddress: new Map(),
  about: rememberAbout(engine),
  hostRoutes: readHostRoutes,
});
