import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import type { PortRange } from '#kernel/port-range.ts';
import type { Router } from '#runtimes/router.ts';
import { parseRoutes } from './address-pool.ts';
import type { DiskLimits } from '#runtimes/tools/disk-limits.ts';
import { FormerLogs } from '#runtimes/tools/former-logs.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';

/** Default of the setting QUARTERDECK_PROCESS_LIMIT. */
const DEFAULT_PROCESS_LIMIT = 1024;

/** Properties of the engine and its machine. */
export interface EngineAbout {
  product: 'Docker Engine' | 'Podman';
  version: string;
  /** True if BuildKit answers behind the build endpoint. */
  buildkit: boolean;
  /** True if the builder supports here-documents in a Dockerfile. */
  hereDocuments: boolean;
  /** Architecture of the machine, as images name it: `amd64`. */
  architecture: string;
  cpus: number;
  rootless: boolean;
  /** True if the kernel lets the engine limit memory and CPU. */
  limitsMemory: boolean;
  limitsCpu: boolean;
  /** Folder of this machine in which the engine keeps images; null if there is no such folder. */
  storage: string | null;
}

/** Engine together with the settings and locks of the runtime. */
export interface DockerNode {
  engine: Docker;
  installation: string;
  router: Router;
  pool: string;
  /** Image with Node for the proxies of executions. */
  egressImage: string;
  /** Address on which ports are published when container addresses can't be reached: loopback, or a remote engine's address. */
  publishAddress: string;
  /** Maximum number of processes and threads of a container. */
  processLimit: number;
  /** Maximum size of a built image, and the reserve of the engine's disk; undefined for no limit. */
  buildDisk: DiskLimits | undefined;
  /** Logs of instances that were removed. */
  formerLogs: FormerLogs;
  /** Ports on which services may be published; null for all. */
  publishedPorts: PortRange | null;
  /** Serialises per environment: choosing addresses, creating and removing its network. */
  environments: KeyedLock;
  /** Serialises changes of one service's instances within this process. */
  services: KeyedLock;
  /** Last address given out, by network. */
  lastAddress: Map<string, string>;
  about(): Promise<EngineAbout>;
  /** Networks that this machine has routes to, CIDR. */
  hostRoutes(): Promise<string[]>;
  /** Starts the process that watches liveness probes, if it is needed and not running. */
  supervise(): Promise<void>;
  log(line: string): void;
}

/** Queries the properties of the engine. */
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
    // Docker Engine 23 and Podman 5 are the first whose built-in frontends support here-documents.
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

/** Caches the answer of `askAbout`; a failed query is repeated. */
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

/** Reads the machine's routing table; empty if there is none to read (macOS, Windows). */
async function readHostRoutes(): Promise<string[]> {
  try {
    return parseRoutes(await readFile('/proc/net/route', 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

export const makeNode = (
  engine: Docker,
  options: Pick<
    DockerNode,
    'installation' | 'router' | 'pool' | 'egressImage' | 'publishAddress' | 'log' | 'supervise'
  > &
    Partial<Pick<DockerNode, 'publishedPorts' | 'processLimit' | 'buildDisk' | 'formerLogs'>>,
): DockerNode => ({
  publishedPorts: null,
  processLimit: DEFAULT_PROCESS_LIMIT,
  buildDisk: undefined,
  formerLogs: new FormerLogs(null),
  ...options,
  engine,
  environments: new KeyedLock(),
  services: new KeyedLock(),
  lastAddress: new Map(),
  about: rememberAbout(engine),
  hostRoutes: readHostRoutes,
});
