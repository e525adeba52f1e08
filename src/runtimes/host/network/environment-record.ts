import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import { freeHost, freeSubnet, hostsFile } from '#runtimes/host/network/address-plan.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Network that the instances of an environment share, `environments/<id>/network.json`. */
export interface EnvironmentRecord {
  format: 1;
  /** Index of the network in the address plan. */
  index: number;
  /** Instance -> its host number. */
  hosts: Record<string, number>;
  /** Service -> its internal name and the addresses that answer for it. */
  names: Record<string, { hostname: string; addresses: string[] }>;
}

/** Store of the records of environments. Every change is written before it is acted upon. */
export class EnvironmentRecords {
  readonly #layout: Layout;

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  read(environmentId: string): EnvironmentRecord | null {
    return readJson<EnvironmentRecord>(this.#file(environmentId));
  }

  /** Returns the record; creates it with a network of its own if absent. `routes` are the machine's. */
  open(environmentId: string, routes: readonly string[]): EnvironmentRecord {
    const present = this.read(environmentId);
    if (present) return present;
    const taken = new Set(this.#layout.environments().flatMap((id) => this.read(id)?.index ?? []));
    const index = freeSubnet(environmentId, taken, routes);
    if (index === null)
      throw new RuntimeError('failed', 'All 256 networks for environments on this machine are taken.');
    const record: EnvironmentRecord = { format: 1, index, hosts: {}, names: {} };
    this.write(environmentId, record);
    return record;
  }

  /** Assigns an instance its host number; returns the same one if it has one already. */
  takeHost(environmentId: string, record: EnvironmentRecord, instance: string): number {
    const host = record.hosts[instance] ?? freeHost(new Set(Object.values(record.hosts)));
    if (host === null) throw new RuntimeError('failed', 'All 253 addresses of the environment are taken.');
    record.hosts[instance] = host;
    this.write(environmentId, record);
    return host;
  }

  write(environmentId: string, record: EnvironmentRecord): void {
    makePrivate(this.#layout.environment(environmentId));
    writeAtomically(this.#file(environmentId), JSON.stringify(record));
    this.#writeHosts(environmentId, record);
  }

  /** Returns the path of the hosts file that all instances of the environment show. */
  hostsFile(environmentId: string): string {
    return join(this.#layout.environment(environmentId), 'hosts');
  }

  /** Writes the hosts file in place, because the instances have this very file mounted. Longer content first, then the end is cut. */
  #writeHosts(environmentId: string, record: EnvironmentRecord): void {
    const path = this.hostsFile(environmentId);
    const content = hostsFile(Object.values(record.names));
    const present = readIfThere(path);
    if (present === content) return;
    if (present === null) return writeFileSync(path, content, { mode: 0o644 });
    writeFileSync(path, content.padEnd(present.length, '\n'), { flag: 'r+' });
  }

  #file(environmentId: string): string {
    return join(this.#layout.environment(environmentId), 'network.json');
  }
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
