import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of all files of a service, derived from ids alone: after a crash every file can still be found. */
export class Layout {
  readonly dataDir: string;
  readonly #host: string;

  constructor(dataDir: string) {
    this.dataDir = dataDir;
    this.#host = join(dataDir, 'host', 'services');
  }

  /** Folder of a service. */
  service(serviceId: string): string {
    return join(this.#host, plainName(serviceId));
  }

  generation(serviceId: string, generation: number): string {
    return join(this.service(serviceId), String(generation));
  }

  instance(at: InstanceKey): string {
    return join(this.generation(at.serviceId, at.generation), String(at.n));
  }

  /** Returns the ids of the services that have files. */
  services(): string[] {
    return namesIn(this.#host);
  }

  /** Returns the existing generations of a service, ascending. */
  generations(serviceId: string): number[] {
    return numbersIn(this.service(serviceId));
  }

  /** Returns all existing instances of a service, by generation and number. */
  instances(serviceId: string): InstanceKey[] {
    return this.generations(serviceId).flatMap((generation) =>
      numbersIn(this.generation(serviceId, generation)).map((n) => ({ serviceId, generation, n })),
    );
  }

  /** Returns the folder with the logs of a service's former instances. */
  formerLogs(serviceId: string): string {
    return join(this.service(serviceId), 'former-logs');
  }

  /** Returns the folder of an execution, whose key is `<generation>-<name>`. */
  task(serviceId: string, key: string): string {
    return join(this.service(serviceId), 'tasks', plainName(key));
  }

  /** Returns the keys of the existing executions of a service. */
  tasks(serviceId: string): string[] {
    return namesIn(join(this.service(serviceId), 'tasks'));
  }

  /** Returns the folder of a service's volume, which outlives generations. */
  volume(storageId: string): string {
    return join(this.dataDir, 'volumes', plainName(storageId));
  }

  volumes(): string[] {
    return namesIn(join(this.dataDir, 'volumes'));
  }

  /** Returns the folder that the instances of an environment share. */
  environment(environmentId: string): string {
    return join(this.dataDir, 'host', 'environments', plainName(environmentId));
  }

  environments(): string[] {
    return namesIn(join(this.dataDir, 'host', 'environments'));
  }
}

export interface InstanceKey {
  serviceId: string;
  generation: number;
  n: number;
}

export const instanceName = (at: InstanceKey) => `${at.serviceId}-${at.generation}-${at.n}`;

/** Returns an id as the name of a folder; throws if it could lead out of the parent folder. */
function plainName(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)) throw new Error(`"${id}" cannot name a folder`);
  return id;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

const numbersIn = (folder: string) =>
  namesIn(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
