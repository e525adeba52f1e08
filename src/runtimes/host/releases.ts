import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivate, readJson, writeAtomically } from '#kernel/private-files.ts';
import type { Layout } from '#runtimes/host/layout.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** Spec of a generation, `<generation>/release.json`, mode 0600: it holds the variables, so that `restart` needs no further input. */
interface Release {
  format: 1;
  spec: WorkloadSpec;
}

/** Release that serves, `<service>/current.json`. */
export interface Current {
  format: 1;
  generation: number;
  /** Numbers of the instances that the routes lead to. */
  instances: number[];
  /** True if the service was stopped on request, so that no running instance is expected. */
  stopped: boolean;
  /** Generation of the deployment that these instances were restarted for. */
  restartedFor?: number;
}

/** Store of a service's releases and of the one that serves. */
export class Releases {
  readonly #layout: Layout;

  constructor(layout: Layout) {
    this.#layout = layout;
  }

  read(serviceId: string, generation: number): WorkloadSpec | null {
    return readJson<Release>(this.#file(serviceId, generation))?.spec ?? null;
  }

  write(spec: WorkloadSpec): void {
    const { serviceId, generation } = spec.identity;
    const folder = this.#layout.generation(serviceId, generation);
    makePrivate(folder);
    const release: Release = { format: 1, spec };
    try {
      writeAtomically(this.#file(serviceId, generation), JSON.stringify(release));
    } catch (error) {
      // An empty folder would stay until the next release.
      if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
      throw error;
    }
  }

  /** Returns the generations that have a release, ascending. */
  generations(serviceId: string): number[] {
    return this.#layout.generations(serviceId).filter((generation) => this.read(serviceId, generation) !== null);
  }

  current(serviceId: string): Current | null {
    return readJson<Current>(this.#currentFile(serviceId));
  }

  setCurrent(serviceId: string, current: Omit<Current, 'format'>): void {
    writeAtomically(this.#currentFile(serviceId), JSON.stringify({ format: 1, ...current }));
  }

  clearCurrent(serviceId: string): void {
    rmSync(this.#currentFile(serviceId), { force: true });
  }

  #file(serviceId: string, generation: number): string {
    return join(this.#layout.generation(serviceId, generation), 'release.json');
  }

  #currentFile(serviceId: string): string {
    return join(this.#layout.service(serviceId), 'current.json');
  }
}
