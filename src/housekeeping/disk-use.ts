import { readdir, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Gauge, Registry } from 'prom-client';
import { renewGauge } from '#platform/telemetry/gauges.ts';
import type { Platform } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import type { DiskUse } from '#runtimes/runtime.ts';

/** Returns the bytes that a folder with everything in it takes on disk. */
export type FolderSize = (folder: string, signal: AbortSignal) => Promise<number>;

/** Kinds of `quarterdeck_disk_bytes`. */
type DiskKind =
  | 'images'
  | 'volumes'
  | 'workloads'
  | 'build_cache'
  | 'checkouts'
  | 'postgres'
  | 'other'
  | 'database'
  | 'deployment_logs';

export type DiskBytes = Record<DiskKind, number>;

/** Folders of the data directory that have a kind of their own; null where a runtime counts them. */
const FOLDERS: Record<string, DiskKind | null> = {
  images: null,
  volumes: null,
  host: null,
  checkouts: 'checkouts',
  git: 'checkouts',
  postgres: 'postgres',
};

export interface DiskGauges {
  bytes: Gauge<'kind'>;
  free: Gauge;
  measured: Gauge;
}

/** The gauges of `/metrics`: they show what was measured last and cost nothing to read. */
export const createDiskGauges = (registry: Registry): DiskGauges => ({
  bytes: renewGauge(registry, {
    name: 'quarterdeck_disk_bytes',
    help: 'Bytes on disk by what they are for: images, volumes, workloads and build_cache of the runtimes of this machine; checkouts, postgres and other in the data directory; the database, and its deployment_logs.',
    labelNames: ['kind'],
  }),
  free: renewGauge(registry, {
    name: 'quarterdeck_disk_free_bytes',
    help: 'Bytes that are free where the data directory lies.',
  }),
  measured: renewGauge(registry, {
    name: 'quarterdeck_disk_measured_timestamp_seconds',
    help: 'When the disk use was last measured, Unix time; 0 before the first time.',
  }),
});

/**
 * Measures the disk use of the data directory and the database. Sets the gauges from it and from the runtimes' last measurement. Takes
 * seconds, because it looks at every file.
 */
export async function measureDisk(
  platform: Platform,
  uses: DiskUse[],
  gauges: DiskGauges,
  folderBytes: FolderSize,
  signal: AbortSignal,
): Promise<DiskBytes> {
  const bytes: DiskBytes = {
    images: 0,
    volumes: 0,
    workloads: 0,
    build_cache: 0,
    checkouts: 0,
    postgres: 0,
    other: 0,
    database: 0,
    deployment_logs: 0,
  };
  for (const use of uses) {
    bytes.images += use.images;
    bytes.volumes += use.volumes;
    bytes.workloads += use.workloads;
    bytes.build_cache += use.buildCache;
  }
  const { dataDir } = platform.settings;
  for (const name of await readdir(dataDir)) {
    signal.throwIfAborted();
    const kind = FOLDERS[name] === undefined ? 'other' : FOLDERS[name];
    if (kind) bytes[kind] += await folderBytes(path.join(dataDir, name), signal);
  }
  const { rows } = await sql<{ database: number; logs: number }>`select
    pg_database_size(current_database()) as database, pg_total_relation_size('deployment_log') as logs`.execute(
    platform.db,
  );
  bytes.database = rows[0]!.database;
  bytes.deployment_logs = rows[0]!.logs;
  for (const [kind, value] of Object.entries(bytes)) gauges.bytes.set({ kind }, value);
  const place = await statfs(dataDir);
  gauges.free.set(place.bavail * place.bsize);
  gauges.measured.set(Date.now() / 1000);
  return bytes;
}
