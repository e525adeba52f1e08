/**
 * Number of the format of a backup file: a tar whose first entry describes it, then each table's rows as PostgreSQL's COPY text, compressed
 * with zstd in parts, then the manifest and its checksum. `tar` and `zstd` alone can take it apart.
 */
export const FORMAT = 1;

export const MANIFEST_ENTRY = 'manifest.json';
export const MANIFEST_SUM_ENTRY = 'manifest.sha256';

/** Bytes of rows in a part before compression: what a backup and a restore hold in memory at a time. */
export const PART_BYTES = 4 * 1024 * 1024;

/** Kind of archive: a mark, parts, a manifest and its checksum. */
export interface ArchiveKind<M extends Mark = Mark> {
  /** Name of the first entry. */
  markEntry: string;
  format: number;
  /** Names for people: of the archive, and of what to do with one that is damaged. */
  name: string;
  again: string;
  /** Size in bytes that no entry exceeds, and no part once it is decompressed. */
  mostEntryBytes: number;
  mostPartBytes: number;
  /** Parts that the manifest lists, in the order of the archive. */
  partsOf(manifest: M): Part[];
}

/** Size that no entry of a backup exceeds: a row of the largest value that COPY sends may end a part. */
const MOST_BACKUP_BYTES = 1024 * 1024 * 1024 + PART_BYTES;

export const BACKUP: ArchiveKind<Manifest> = {
  markEntry: 'quarterdeck-backup.json',
  format: FORMAT,
  name: 'backup of Quarterdeck',
  again: 'take another backup',
  mostEntryBytes: MOST_BACKUP_BYTES,
  mostPartBytes: MOST_BACKUP_BYTES,
  partsOf: (manifest) => manifest.tables.flatMap((table) => table.parts),
};

/** First entry: it tells a file of another format apart. */
export interface Mark {
  format: number;
  /** Version of the program that wrote it. */
  release: string;
}

export interface Part {
  name: string;
  /** Bytes as they lie in the archive. */
  bytes: number;
  sha256: string;
}

export interface TableDump {
  name: string;
  /** Columns in the order of the rows; generated ones are left out. */
  columns: string[];
  rows: number;
  parts: Part[];
}

/** Range partition: bounds as PostgreSQL writes them. */
export interface PartitionDump {
  name: string;
  of: string;
  from: string;
  to: string;
}

export interface SequenceDump {
  name: string;
  value: string;
  /** True if `value` was given out. */
  called: boolean;
}

interface MigrationDump {
  version: number;
  name: string;
  checksum: string;
}

/** Last entry but one: everything that a restore needs to know before it writes anything. */
export interface Manifest extends Mark {
  /** ISO 8601: when the snapshot was taken. */
  takenAt: string;
  installation: {
    id: string;
    epoch: number;
    /** Base64: encrypted with the key of the vault, so that a wrong one is refused. */
    canary: string;
  };
  /** Ids of the keys of the vault that something in the dump is encrypted with, hexadecimal. The keys themselves are not in it. */
  vaultKeys: string[];
  migrations: MigrationDump[];
  tables: TableDump[];
  partitions: PartitionDump[];
  sequences: SequenceDump[];
}

/** Error of a file or database that is refused; the message says what to do. */
export class BackupRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'BackupRefused';
  }
}
