import type { LogLine, LogOptions } from '#runtimes/runtime.ts';
import type { EndedInstance } from '#runtimes/tools/packed-log.ts';

/** Instance whose log is kept elsewhere than on its machine. */
export interface EndedElsewhere extends EndedInstance {
  /** Environment that it was found in: labels alone could name the service of anyone. */
  environmentId: string;
  endedAt: Date;
}

/** Keeps logs of ended instances of one cluster where the cluster itself keeps none. */
export interface FormerLogStore {
  /**
   * Keeps the last lines of an instance. Repeated, it replaces what it kept unless that was more. Keeps nothing of a service that the cluster
   * does not have in that environment.
   */
  keep(instance: EndedElsewhere, lines: LogLine[]): Promise<void>;
  /** Returns the newest lines that are kept of a service, oldest first. */
  read(serviceId: string, options: Omit<LogOptions, 'follow'>): Promise<LogLine[]>;
}
