import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import type { RouteEntry } from '#runtimes/router.ts';

/** Stored routes of one service. */
export interface ServiceRoutes {
  serviceId: string;
  generation: number;
  routes: RouteEntry[];
}

/** Route with the service that it belongs to. */
export type OwnedRoute = RouteEntry & { serviceId: string };

/** Returns a host name in the form used for comparison: lower case, without a final dot. */
export const comparedHost = (host: string): string => host.toLowerCase().replace(/\.$/, '');

/**
 * Routes on disk, in a file for each service. A change thus costs the same with ten services and ten thousand. Files are replaced by
 * renaming: a reader or a crash finds the old content or the new one.
 */
export class RouteFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Returns the routes of one service, null if there are none or a power cut left an empty file. */
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
   * Returns all services, in the order of their names. A file that can't be read (a power cut can leave an empty one) is reported to
   * `onDamage` and left out: the routes return with the next `submit` of its service. The route of a host that an earlier service has is
   * left out, too: requests to one host never reach two services.
   */
  readAll(onDamage: (message: string) => void): ServiceRoutes[] {
    const owners = new Map<string, string>();
    return readdirSync(this.#directory)
      .filter((name) => name.endsWith('.json'))
      .sort()
      .flatMap((name) => {
        try {
          const service = JSON.parse(readFileSync(join(this.#directory, name), 'utf8')) as ServiceRoutes;
          return [{ ...service, routes: ownedRoutes(service, owners, onDamage) }];
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

/** Returns a service's routes without hosts of other services; records it as the owner of the rest. */
function ownedRoutes(
  { serviceId, routes }: ServiceRoutes,
  owners: Map<string, string>,
  onDamage: (message: string) => void,
): RouteEntry[] {
  return routes.filter(({ host }) => {
    const owner = owners.get(comparedHost(host)) ?? serviceId;
    owners.set(comparedHost(host), owner);
    if (owner !== serviceId)
      onDamage(`The route of ${host} to service ${serviceId} is left out: the host belongs to service ${owner}.`);
    return owner === serviceId;
  });
}
