import { type ArchiveKind, type Manifest, type Mark, type Part } from '#platform/backup/format.ts';

const MIB = 2 ** 20;

/** Volume in the archive. */
export interface PackedVolume {
  runtime: string;
  id: string;
  serviceId: string;
  labels: Record<string, string>;
  /** Bytes of its content as a tar archive. */
  bytes: number;
  parts: Part[];
}

/** Last entry but one: what is in the archive, and what the new machine must have for it. */
export interface MoveManifest extends Mark {
  /** Id of this archive: an unpacking that was broken off goes on with the same one only. */
  id: string;
  packedAt: string;
  /** Name of the machine that it was packed on. */
  machine: string;
  /** True if the service ran as root: owners of files in volumes are accounts of the machine then. */
  asRoot: boolean;
  /** Facts about the backup of the database. */
  database: Pick<Manifest, 'takenAt' | 'release' | 'migrations' | 'installation'> & {
    bytes: number;
    /** Bytes that the database took on the disk. */
    diskBytes: number;
    parts: Part[];
  };
  /** Files of the data directory. */
  files: { bytes: number; parts: Part[] };
  volumes: PackedVolume[];
}

/** Folders of the archive. */
export const DATABASE = 'database';
export const FILES = 'files';
export const folderOf = ({ runtime, id }: Pick<PackedVolume, 'runtime' | 'id'>): string => `volumes/${runtime}/${id}`;

/** Archive of a whole installation: a tar of parts, of which `tar`, `zstd` and `cat` make the backup and the tar of each volume again. */
export const MOVE: ArchiveKind<MoveManifest> = {
  markEntry: 'quarterdeck-move.json',
  format: 1,
  name: 'archive of `quarterdeck move pack`',
  again: 'pack or copy it again',
  // The manifest names each part of each volume: 1 TiB has some 40 MB of names.
  mostEntryBytes: 256 * MIB,
  mostPartBytes: 32 * MIB,
  partsOf: ({ database, files, volumes }) => [database, files, ...volumes].flatMap(({ parts }) => parts),
};

/** Returns the folder of a part, which tells what it is a part of. */
export const folderOfPart = (name: string): string => name.slice(0, name.lastIndexOf('/'));
