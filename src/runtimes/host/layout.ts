import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Where everything of a service lies, derived from ids alone, so that a crash leaves nothing that can't be found. */
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

  /** Ids of the services of which anything is there. */
  services(): string[] {
    return namesIn(this.#host);
  }

  /** Generations of a service that are there, ascending. */
  generations(serviceId: string): number[] {
    return numbersIn(this.service(serviceId));
  }

  /** All instances of a service that are there, by generation and number. */
  instances(serviceId: string): InstanceKey[] {
    return this.generations(serviceId).flatMap((generation) =>
      numbersIn(this.generation(serviceId, generation)).map((n) => ({ serviceId, generation, n })),
    );
  }

  /** Folder of an execution; `<generation>-<name>` is its key. */
  task(serviceId: string, key: string): string {
    return join(this.service(serviceId), 'tasks', plainName(key));
  }

  /** Keys of the executions of a service that are there. */
  tasks(serviceId: string): string[] {
    return namesIn(join(this.service(serviceId), 'tasks'));
  }

  /** Folder of a service's volume: it outlives generations. */
  volume(storageId: string): string {
    return join(this.dataDir, 'volumes', plainName(storageId));
  }

  volumes(): string[] {
    return namesIn(join(this.dataDir, 'volumes'));
  }

  /** What the instances of an environment share. */
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

/** Ids become names of folders: whatever else they hold, never a way out. */
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
