import { createServer } from 'node:net';
import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import { mainPort, type Attached, type Attachment, type InstanceNetwork } from '#runtimes/host/network/network.ts';
import { readInstance } from '#runtimes/host/instance-record.ts';
import type { Bind } from '#runtimes/host/view/plan.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Default range of the ports for PORT, below the ports that the kernel gives to connections. */
const RANGE = { from: 21_000, to: 22_999 };

interface PortRange {
  from: number;
  to: number;
}

/** Network of the machine itself: PORT tells each instance where to listen. */
export class MachineNetwork implements InstanceNetwork {
  readonly isolated = false;
  readonly #layout: Layout;
  readonly #range: PortRange;
  /** Ports that are assigned but not yet written into an instance's record. */
  readonly #given = new Map<string, number>();

  /** Reads the range, which the first start stores so that a port keeps its meaning later. */
  constructor(layout: Layout, range: PortRange = RANGE) {
    this.#layout = layout;
    const file = join(layout.dataDir, 'host', 'ports.json');
    const stored = readJson<PortRange>(file);
    this.#range = stored ?? range;
    if (stored) return;
    makePrivate(join(layout.dataDir, 'host'));
    writeAtomically(file, JSON.stringify(range));
  }

  async attach(name: string, spec: Attached, previous: Attachment | null): Promise<Attachment> {
    const main = mainPort(spec);
    if (main === null) return { address: '127.0.0.1', ports: {}, port: null };
    if (previous?.port) return previous;
    const port = await this.#freePort(name);
    return { address: '127.0.0.1', ports: { [main]: port }, port };
  }

  has(): boolean {
    return true;
  }

  prefix(): string[] {
    return [];
  }

  binds(): Bind[] {
    return [];
  }

  async hostAddress(): Promise<string> {
    return '127.0.0.1';
  }

  async publish(): Promise<void> {
    // The machine's network resolves no internal names.
  }

  async detach(name: string): Promise<void> {
    this.#given.delete(name);
  }

  async forget(): Promise<void> {
    // Nothing is shared.
  }

  async removeEnvironment(): Promise<void> {
    // Nothing is shared.
  }

  limits(): string[] {
    return [
      'Instances share the network of this machine: each is told its port by the variable PORT, and services do not reach each other by internal name.',
    ];
  }

  async #freePort(name: string): Promise<number> {
    const used = new Set([...this.#recorded(), ...this.#given.values()]);
    for (let port = this.#range.from; port <= this.#range.to; port++) {
      if (used.has(port)) continue;
      used.add(port);
      this.#given.set(name, port);
      if (await isFree(port)) return port;
    }
    this.#given.delete(name);
    throw new RuntimeError('failed', `No port between ${this.#range.from} and ${this.#range.to} is free.`);
  }

  #recorded(): number[] {
    return this.#layout
      .services()
      .flatMap((serviceId) => this.#layout.instances(serviceId))
      .flatMap((at) => readInstance(this.#layout.instance(at))?.attachment.port ?? []);
  }
}

/** Returns whether nothing listens on a port. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, () => server.close(() => resolve(true)));
  });
}
