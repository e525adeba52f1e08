/** Log that is kept of an instance that has ended. */
export interface KeptLog {
  instance: string;
  /** Milliseconds since 1970. */
  endedAt: number;
  /** Returns the packed lines; null if they are gone by now. */
  read(): Promise<Buffer | null>;
  /** Called for content that cannot be unpacked. */
  isDamaged(error: Error): Promise<void>;
}

/** Instance whose log is kept elsewhere than on its machine. */
export interface EndedElsewhere {
  serviceId: string;
  /** Environment that it was found in: labels alone could name the service of anyone. */
  environmentId: string;
  name: string;
  /** Tells it from an earlier instance of the same name. */
  key: string;
  endedAt: Date;
}

/** Keeps logs of ended instances of one cluster, which itself keeps none. */
export interface FormerLogStore {
  /**
   * Keeps the packed lines of an instance. Repeated, it replaces what it kept unless that was more. Keeps nothing of a service that the
   * cluster does not have in that environment.
   */
  keep(instance: EndedElsewhere, content: Buffer): Promise<void>;
  /** Lists the logs that are kept of a service, the one that ended last first. */
  list(serviceId: string): Promise<KeptLog[]>;
}
