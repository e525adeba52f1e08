import type { Probe } from '#runtimes/runtime.ts';

export const DATABASE_TYPES = ['MONGODB', 'MYSQL', 'POSTGRESQL', 'REDIS'] as const;
export type DatabaseType = (typeof DATABASE_TYPES)[number];

/** Generated credentials of a server. */
export interface Credentials {
  login: string;
  password: string;
  /** Name of the initial database, which a backup contains. */
  name: string;
}

/** Program with its arguments. Secrets are passed in its environment only. */
export interface Tool {
  command: string[];
  environment: Record<string, string>;
}

/** Start of a server: the part of a workload that depends on the engine. */
interface ServerStart {
  /** Replaces the image's command; empty keeps it. */
  arguments: string[];
  environment: Record<string, string>;
  files: { path: string; content: string }[];
  /** Mount path of the data volume. */
  mountPath: string;
  /** A program that ends with 0 once the server answers. */
  ready: string[];
}

/** Content that a restore replaces: a table, a collection, a database of keys. */
export interface Content {
  name: string;
  /** Size with its unit, as the engine reports it. */
  amount: string;
}

/** The steps of a restore, each a program beside the running server. */
interface RestoreSteps {
  before: Tool[];
  /** Reads the dump from standard input. */
  load: Tool;
  /** True if the server is restarted after `load`, to load the file that `load` wrote. */
  restart: boolean;
  after: Tool[];
  /** Programs that make the database accessible again when `after` failed. */
  undo: Tool[];
}

/** Backup and restore of a server's content with the engine's own tools, which run beside the server. */
export interface BackupTools {
  /** Format of the dump: a backup is restored only by an engine of the same format. */
  format: string;
  /** Suffix of a downloaded backup's name. */
  extension: string;
  /** Writes a dump of everything to standard output. */
  dump(credentials: Credentials): Tool;
  /** Lists the contents, for `readContents`. */
  contents(credentials: Credentials): Tool;
  readContents(text: string): Content[];
  restore(credentials: Credentials): RestoreSteps;
  /** Description for people of what a backup leaves out; empty if the backup is complete. */
  leavesOut: string;
}

/** Distribution of a server: an image, or a program that the machine has. */
export interface Edition {
  /** Release series (majors), the oldest first. */
  series: readonly string[];
  start(series: string, credentials: Credentials): ServerStart;
  backup: BackupTools;
}

/** A kind of database server. */
export interface Engine {
  type: DatabaseType;
  /** As people write it. */
  label: string;
  port: number;
  login: string;
  /** Name of the initial database. */
  databaseName: string;
  /** Query string of a connection URL, without which the login is refused. */
  urlQuery?: string;
  /** Name of the official image. */
  image: string;
  inImage: Edition;
  /** Release series before those of the image, the oldest first. A configuration may name them; few clusters run them. */
  older: readonly string[];
  /** Edition that runs as a program of a machine without container engine; null if there is none. */
  onMachine: Edition | null;
}

/** Makes a probe that runs every two seconds; the runtime's own deadline ends the waiting. */
export const readinessProbe = (command: string[]): Probe => ({
  check: { type: 'exec', command },
  initialDelaySeconds: 0,
  periodSeconds: 2,
  timeoutSeconds: 5,
  successThreshold: 1,
  failureThreshold: 9,
});

export const tool = (command: string[], environment: Record<string, string> = {}): Tool => ({ command, environment });

/** Parses lines of a name, a tab and an amount. */
export const readLines = (text: string): Content[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [name, amount = ''] = line.split('\t');
      return { name: name!, amount };
    });
