import type { Probe } from '#runtimes/runtime.ts';

export const DATABASE_TYPES = ['MONGODB', 'MYSQL', 'POSTGRESQL', 'REDIS'] as const;
export type DatabaseType = (typeof DATABASE_TYPES)[number];

/** How a server is entered: what was generated for it. */
export interface Credentials {
  login: string;
  password: string;
  /** Database that there is from the beginning, and that a backup holds. */
  name: string;
}

/** A program with its arguments; a secret stands in its environment and nowhere else. */
export interface Tool {
  command: string[];
  environment: Record<string, string>;
}

/** How a server is started: what is its own in a workload. */
interface ServerStart {
  /** Replaces the image's command; empty keeps it. */
  arguments: string[];
  environment: Record<string, string>;
  files: { path: string; content: string }[];
  /** Where the volume with its data is mounted. */
  mountPath: string;
  /** A program that ends with 0 once the server answers. */
  ready: string[];
}

/** Something that a restore replaces: a table, a collection, a database of keys. */
export interface Content {
  name: string;
  /** How much there is of it, as its engine says it. */
  amount: string;
}

/** The steps of a restore, each a program beside the running server. */
interface RestoreSteps {
  before: Tool[];
  /** Reads the dump from standard input. */
  load: Tool;
  /** Whether the server is restarted behind `load`: it takes over then what that left. */
  restart: boolean;
  after: Tool[];
  /** What opens the database again where `after` failed. */
  undo: Tool[];
}

/** How a server's content is saved and brought back by its own tools, which run beside it. */
export interface BackupTools {
  /** Names what `dump` writes: a backup is restored only where the same is read. */
  format: string;
  /** What a downloaded backup's name ends with. */
  extension: string;
  /** Writes everything to standard output. */
  dump(credentials: Credentials): Tool;
  /** Writes what there is, for `readContents`. */
  contents(credentials: Credentials): Tool;
  readContents(text: string): Content[];
  restore(credentials: Credentials): RestoreSteps;
  /** What of the server a backup leaves out, as people are told it; empty where it is whole. */
  leavesOut: string;
}

/** How a server comes to a machine: an image, or a program that the machine has. */
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
  /** Name of the database that there is from the beginning. */
  databaseName: string;
  /** What follows the name in a URL, so that the login is accepted. */
  urlQuery?: string;
  /** Name of the official image. */
  image: string;
  inImage: Edition;
  /** Release series that come before those of the image, the oldest first: taken into a configuration, and run by few clusters. */
  older: readonly string[];
  /** How it runs as a program of a machine without container engine; null where it doesn't. */
  onMachine: Edition | null;
}

/** A server is asked every two seconds; the runtime's own deadline ends the waiting. */
export const readinessProbe = (command: string[]): Probe => ({
  check: { type: 'exec', command },
  initialDelaySeconds: 0,
  periodSeconds: 2,
  timeoutSeconds: 5,
  successThreshold: 1,
  failureThreshold: 9,
});

export const tool = (command: string[], environment: Record<string, string> = {}): Tool => ({ command, environment });

/** Lines of a name, a tab and an amount. */
export const readLines = (text: string): Content[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [name, amount = ''] = line.split('\t');
      return { name: name!, amount };
    });
