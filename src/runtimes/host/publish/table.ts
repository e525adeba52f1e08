import { createHash } from 'node:crypto';
import { readJson, writeAtomically } from '#runtimes/tools/shim/state.ts';
import type { Upstream } from '#runtimes/router.ts';

/** A port of this machine and the instances that it leads to. */
export interface PublishedPort {
  protocol: 'TCP' | 'UDP';
  port: number;
  upstreams: Upstream[];
}

/** `table.json`, written by the runtime: what is to be published. */
export type Table = PublishedPort[];

/** `status.json`, written by the program: which table it has carried out, and what of it could not be. */
export interface Status {
  table: string;
  /** Port -> why it isn't published. */
  errors: Record<string, string>;
}

export const TABLE_FILE = 'table.json';
export const STATUS_FILE = 'status.json';

/** Names a table by its content. */
export const tableName = (table: Table) =>
  createHash('sha256').update(JSON.stringify(table)).digest('hex').slice(0, 16);

export const readTable = (path: string): Table => readJson<Table>(path) ?? [];
export const writeTable = (path: string, table: Table) => writeAtomically(path, JSON.stringify(table));
export const readStatus = (path: string) => readJson<Status>(path);
export const writeStatus = (path: string, status: Status) => writeAtomically(path, JSON.stringify(status));
