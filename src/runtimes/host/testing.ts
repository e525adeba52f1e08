import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { newBuild, newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime, type HostRuntimeOptions } from '#runtimes/host/index.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { volumesOf } from '#runtimes/host/volumes.ts';
import { isGone } from '#runtimes/tools/shim/identity.ts';
import type { ContractSetup } from '#runtimes/contract/setup.ts';
import { findMachine } from '#runtimes/host/machine.ts';
import { tryNamespaceNetwork } from '#runtimes/host/network/namespace-network.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import type { BuildSpec, Handle, Runtime, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';

/** Returns what the machine of the tests supports; tests of unsupported features are skipped. */
export async function tryMachine(): Promise<{ namespaces: boolean; networks: boolean }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'host-'));
  try {
    const machine = await findMachine({ dataDir, mode: 'auto', hidden: [] });
    const namespaces = machine.mode === 'namespaces';
    return {
      namespaces,
      networks: namespaces && (await tryNamespaceNetwork(machine.tools.ip, machine.asRoot)) === null,
    };
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

/** Mode and network of the runtime under test. */
export type Variant = Pick<HostRuntimeOptions, 'mode' | 'network'>;

/** Returns the contract's subject in one mode and network of the runtime. */
export const contractSubject = (variant: Variant) => async (setup: ContractSetup) => {
  // Without namespaces the workloads' accounts must reach their folders; the suite's folder is closed to other accounts.
  if (variant.mode === 'plain') chmodSync(dirname(setup.directory), 0o711);
  const { directory: dataDir, installation, router } = setup;
  const reopen = () => createHostRuntime({ dataDir, installation, router, log: () => undefined, ...variant });
  const leftovers = async (identity: WorkloadIdentity) => leftoversOf(dataDir, identity);
  return { runtime: await reopen(), reopen, leftovers };
};

/** Returns all remains of a service: folders, volumes, and processes that name it. */
function leftoversOf(dataDir: string, { serviceId }: WorkloadIdentity): string[] {
  const folders = [join(dataDir, 'host', 'services', serviceId), join(dataDir, 'images', serviceId)];
  const volumes = volumesOf(new Layout(dataDir), serviceId);
  const processes = commandLines().filter((line) => line.includes(serviceId));
  return [...folders.filter((folder) => existsSync(folder)), ...volumes, ...processes];
}

/** Returns the command lines of all visible processes. */
export function commandLines(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch (error) {
        if (isGone(error)) return '';
        throw error;
      }
    });
}

/** Files of a repository: path -> content. */
export type Files = Record<string, string>;

/** Runtime in its own folder, with a repository to build from. `close` removes everything that it made. */
export class TestHost {
  readonly directory: string;
  readonly dataDir: string;
  readonly repository: string;
  readonly router = new MemoryRouter();
  readonly installation = randomUUID();
  readonly #identities: WorkloadIdentity[] = [];
  #runtime: Runtime | undefined;

  constructor(below: string) {
    this.directory = mkdtempSync(join(below, 'host-'));
    chmodSync(this.directory, 0o711);
    this.dataDir = join(this.directory, 'data');
    this.repository = join(this.directory, 'repository');
    mkdirSync(this.repository);
  }

  static async open(options: Partial<HostRuntimeOptions> = {}, below = tmpdir()): Promise<TestHost> {
    const host = new TestHost(below);
    await host.start(options);
    return host;
  }

  async start(options: Partial<HostRuntimeOptions>): Promise<void> {
    this.#runtime = await this.reopen(options);
  }

  get runtime(): Runtime {
    return this.#runtime!;
  }

  reopen(options: Partial<HostRuntimeOptions> = {}): Promise<Runtime> {
    const { dataDir, installation, router } = this;
    return createHostRuntime({ dataDir, installation, router, log: () => undefined, ...options });
  }

  /** Replaces the repository's content. */
  write(files: Files): void {
    rmSync(this.repository, { recursive: true });
    mkdirSync(this.repository);
    for (const [path, content] of Object.entries(files)) {
      const target = join(this.repository, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    }
  }

  identity(changes: Partial<WorkloadIdentity> = {}): WorkloadIdentity {
    const identity = { ...newIdentity(this.installation), ...changes };
    this.#identities.push(identity);
    return identity;
  }

  /** Builds the repository; returns the image and the lines of the log. */
  async build(changes: Partial<BuildSpec> = {}): Promise<{ image: string; cached: boolean; log: string }> {
    const context = newContext();
    const spec = newBuild(changes.identity ?? this.identity(), this.repository, changes);
    const built = await this.runtime.build!(spec, context);
    return { ...built, log: context.lines.join('\n') };
  }

  /** Returns the error message of a build that must fail. */
  async buildError(changes: Partial<BuildSpec> = {}): Promise<string> {
    return this.build(changes).then(
      () => 'it was built',
      (error: Error) => error.message,
    );
  }

  /** Returns a spec for an image, with the service of that image. */
  spec(image: string, changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    return newSpec(changes.identity ?? this.identity(), image, { readiness: null, ...changes });
  }

  apply(spec: WorkloadSpec): Promise<Handle> {
    return this.runtime.submit(spec, newContext());
  }

  /** Waits until a line of a service's log matches; returns it. */
  async line(handle: Handle, wanted: RegExp): Promise<string> {
    return vi.waitFor(
      async () => {
        const lines = await this.log(handle);
        const found = lines.find((line) => wanted.test(line));
        if (found === undefined) throw new Error(`no line like ${wanted} in:\n${lines.join('\n')}`);
        return found;
      },
      { timeout: 40_000, interval: 20 },
    );
  }

  /** Returns the texts of a service's log. */
  async log(handle: Handle): Promise<string[]> {
    const texts: string[] = [];
    const options = { tail: 1000, follow: false, signal: new AbortController().signal };
    for await (const line of this.runtime.logs(handle, options)) texts.push(line.text);
    return texts;
  }

  async close(): Promise<void> {
    for (const identity of this.#identities) await this.runtime.remove(identity, null, newContext());
    await this.#runtime?.close();
    removeTree(this.directory);
  }
}
