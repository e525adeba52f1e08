import { mkdirSync, mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { vi } from 'vitest';
import { newBuild, newContext, newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import { createHostRuntime, type HostRuntimeOptions } from '#runtimes/host/index.ts';
import { findMachine } from '#runtimes/host/machine.ts';
import { tryNamespaceNetwork } from '#runtimes/host/network/namespace-network.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import type { BuildSpec, Handle, Runtime, WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';

/** What the machine of the tests can do: what it can't is not tested. */
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

/** Files of a repository: path -> content. */
export type Files = Record<string, string>;

/** A runtime in a folder of its own, with a repository to build from. `close` removes everything that it made. */
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

  /** Builds the repository; answers the image and the lines of the log. */
  async build(changes: Partial<BuildSpec> = {}): Promise<{ image: string; cached: boolean; log: string }> {
    const context = newContext();
    const spec = newBuild(changes.identity ?? this.identity(), this.repository, changes);
    const built = await this.runtime.build!(spec, context);
    return { ...built, log: context.lines.join('\n') };
  }

  /** Why a build fails. */
  async buildError(changes: Partial<BuildSpec> = {}): Promise<string> {
    return this.build(changes).then(
      () => 'it was built',
      (error: Error) => error.message,
    );
  }

  /** A spec for an image of the service in it. */
  spec(image: string, changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    return newSpec(changes.identity ?? this.identity(), image, { readiness: null, ...changes });
  }

  apply(spec: WorkloadSpec): Promise<Handle> {
    return this.runtime.apply(spec, newContext());
  }

  /** Waits until a line of a service's log is as wanted; answers it. */
  async line(handle: Handle, wanted: RegExp): Promise<string> {
    return vi.waitFor(
      async () => {
        const lines = await this.log(handle);
        const found = lines.find((line) => wanted.test(line));
        if (found === undefined) throw new Error(`no line like ${wanted} in:\n${lines.join('\n')}`);
        return found;
      },
      { timeout: 10_000, interval: 20 },
    );
  }

  /** Texts of a service's log. */
  async log(handle: Handle): Promise<string[]> {
    const texts: string[] = [];
    const options = { tail: 1000, follow: false, signal: new AbortController().signal };
    for await (const line of this.runtime.logs(handle, options)) texts.push(line.text);
    return texts;
  }

  async close(): Promise<void> {
    for (const identity of this.#identities) await this.runtime.remove(identity, null, newContext());
    await this.runtime.close();
    removeTree(this.directory);
  }
}
