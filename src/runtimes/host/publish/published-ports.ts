import { setTimeout as sleep } from 'node:timers/promises';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout } from '#runtimes/host/layout.ts';
import type { Machine } from '#runtimes/host/machine.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { keyOf } from '#runtimes/host/publish/forwarder.ts';
import {
  readStatus,
  STATUS_FILE,
  TABLE_FILE,
  tableName,
  writeTable,
  type Table,
} from '#runtimes/host/publish/table.ts';
import { readShim, startShim, stopShim } from '#runtimes/tools/shim/index.ts';
import { RuntimeError, type WorkloadSpec } from '#runtimes/runtime.ts';

const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './program.ts' : './program.js', import.meta.url).pathname;
/** Milliseconds that the program may take to open or change its ports. */
const PATIENCE_MS = 10_000;

/** TCP and UDP ports of a service on this machine. Each service with ports has one forwarding process. */
export class PublishedPorts {
  readonly #layout: Layout;
  readonly #machine: Machine;
  readonly #bootId: string;

  constructor(layout: Layout, machine: Machine, bootId: string) {
    this.#layout = layout;
    this.#machine = machine;
    this.#bootId = bootId;
  }

  /** Returns the published ports of a spec, with their key (`5432/TCP`). */
  static of(spec: WorkloadSpec): { key: string; port: number; protocol: 'TCP' | 'UDP'; internalPort: number }[] {
    return spec.ports.flatMap(({ protocol, publiclyAccessible, externalPort, internalPort }) =>
      publiclyAccessible && (protocol === 'TCP' || protocol === 'UDP')
        ? [{ key: keyOf({ port: externalPort, protocol }), port: externalPort, protocol, internalPort }]
        : [],
    );
  }

  /** Publishes a table. Throws RuntimeError `not_ready` that names the ports which another program has. */
  async set(serviceId: string, table: Table): Promise<void> {
    if (table.length === 0) return this.remove(serviceId);
    const folder = this.#folder(serviceId);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    rmSync(join(folder, STATUS_FILE), { force: true });
    writeTable(join(folder, TABLE_FILE), table);
    const { alive } = readShim(join(folder, 'shim'), this.#bootId) ?? { alive: false };
    if (!alive) await this.#start(folder);
    const errors = await this.#outcome(folder, table);
    const failed = Object.entries(errors).map(([port, code]) => `${port} (${REASONS[code] ?? code})`);
    if (failed.length) throw new RuntimeError('not_ready', `These ports cannot be published: ${failed.join(', ')}.`);
  }

  async remove(serviceId: string): Promise<void> {
    const folder = this.#folder(serviceId);
    await stopShim(join(folder, 'shim'), 1_000, this.#bootId);
    removeTree(folder);
  }

  async #start(folder: string): Promise<void> {
    await startShim({
      directory: join(folder, 'shim'),
      command: process.execPath,
      args: ['--disable-warning=ExperimentalWarning', PROGRAM, folder],
      env: { NODE_COMPILE_CACHE: this.#machine.compileCache },
      compileCache: this.#machine.compileCache,
    });
  }

  async #outcome(folder: string, table: Table): Promise<Record<string, string>> {
    const name = tableName(table);
    for (let waited = 0; waited < PATIENCE_MS; waited += 20) {
      const status = readStatus(join(folder, STATUS_FILE));
      if (status?.table === name) return status.errors;
      await sleep(20);
    }
    throw new RuntimeError('failed', `The process that publishes ports (${folder}) does not answer.`);
  }

  #folder(serviceId: string): string {
    return join(this.#layout.service(serviceId), 'publish');
  }
}

const REASONS: Record<string, string> = {
  EADDRINUSE: 'another program or service of this machine has it',
  EACCES: 'only root may have it',
};
