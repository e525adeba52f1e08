import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout } from '#runtimes/host/layout.ts';
import { makePrivate, readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';

/** `<generation>/release.json`, mode 0600: it holds the variables, so that `restart` needs nobody to repeat them. */
interface Release {
  format: 1;
  spec: WorkloadSpec;
}

/** `<service>/current.json`: what serves. */
export interface Current {
  format: 1;
  generation: number;
  /** Numbers of the instances that the routes lead to. */
  instances: number[];
  /** Stopped on request: nothing runs, and that is as it should be. */
  stopped: boolean;
  /** Generation of the deployment that these instances were restarted for. */
  restartedFor?: number;
}

/** What of a service is written down besides its instances. */
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
      // An empty one would stay until the next release.
      if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
      throw error;
    }
  }

  /** Generations that are there as releases, ascending. */
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
