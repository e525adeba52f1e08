import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RouteEntry } from '#runtimes/router.ts';
import { readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';

/** The routes of one service as they stand on disk. */
export interface ServiceRoutes {
  serviceId: string;
  generation: number;
  routes: RouteEntry[];
}

/**
 * Routes on disk, a file for each service (so that a change costs the same with ten services and ten thousand), replaced by
 * renaming: a reader or a crash finds the old content or the new one.
 */
export class RouteFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Routes of one service, null if there are none or a power cut left an empty file. */
  read(serviceId: string): ServiceRoutes | null {
    try {
      return readJson<ServiceRoutes>(this.#path(serviceId));
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  }

  write(service: ServiceRoutes): void {
    writeAtomically(this.#path(service.serviceId), JSON.stringify({ format: 1, ...service }));
  }

  delete(serviceId: string): void {
    rmSync(this.#path(serviceId), { force: true });
  }

  /**
   * All services. A file that can't be read (a power cut can leave an empty one) is told to `onDamage` and left out: the
   * routes come again with the next `apply` of its service.
   */
  readAll(onDamage: (message: string) => void): ServiceRoutes[] {
    return readdirSync(this.#directory).flatMap((name) => {
      if (!name.endsWith('.json')) return [];
      try {
        return [JSON.parse(readFileSync(join(this.#directory, name), 'utf8')) as ServiceRoutes];
      } catch (error) {
        onDamage(`The routes in ${name} cannot be read: ${String(error)}`);
        return [];
      }
    });
  }

  #path(serviceId: string): string {
    return join(this.#directory, `${encodeURIComponent(serviceId)}.json`);
  }
}
