import { createHash } from 'node:crypto';
import { readJson, writeAtomically } from '#kernel/private-files.ts';
import type { Upstream } from '#runtimes/router.ts';

/** Port of this machine and the instances that it leads to. */
export interface PublishedPort {
  protocol: 'TCP' | 'UDP';
  port: number;
  upstreams: Upstream[];
}

/** Ports to publish, written by the runtime to `table.json`. */
export type Table = PublishedPort[];

/** Outcome written by the program to `status.json`: the applied table, and the ports that failed. */
export interface Status {
  table: string;
  /** Port -> reason why it is not published. */
  errors: Record<string, string>;
}

export const TABLE_FILE = 'table.json';
export const STATUS_FILE = 'status.json';

/** Returns a name of a table that depends on its content. */
export const tableName = (table: Table) =>
  createHash('sha256').update(JSON.stringify(table)).digest('hex').slice(0, 16);

export const readTable = (path: string): Table => readJson<Table>(path) ?? [];
export const writeTable = (path: string, table: Table) => writeAtomically(path, JSON.stringify(table));
export const readStatus = (path: string) => readJson<Status>(path);
export const writeStatus = (path: string, status: Status) => writeAtomically(path, JSON.stringify(status));
