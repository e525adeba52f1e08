import { hostname } from 'node:os';
import { createReadStream } from 'node:fs';
import { readParts, verify, type ArchiveFile } from '#platform/backup/archive-reader.ts';
import { ArchiveWriter } from '#platform/backup/archive-writer.ts';
import { BackupRefused, type Manifest, type Part } from '#platform/backup/format.ts';
import { checkedTar, TarCheck } from '#platform/move/checked-tar.ts';
import { refuseFile, packFiles } from '#platform/move/files.ts';
import {
  DATABASE,
  FILES,
  folderOf,
  folderOfPart,
  MOVE,
  type MoveManifest,
  type PackedVolume,
} from '#platform/move/format.ts';
import { decryption, encryption } from '#platform/move/passphrase.ts';
import { RELEASE } from '#platform/release.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Bytes handed over at a time: parts grow by whole chunks. */
const MOST_CHUNK = 2 ** 20;

/** Volume to pack, with its content. */
export interface VolumeSource extends Omit<PackedVolume, 'bytes' | 'parts'> {
  read(): AsyncIterable<Buffer>;
}

export interface PackOptions {
  id: string;
  settings: Pick<Settings, 'dataDir' | 'vaultKeyFile'>;
  /** Backup of the database, and what is known of it. */
  backup: { file: string; manifest: Manifest; diskBytes: number };
  volumes: VolumeSource[];
  passphrase: string | undefined;
  progress(text: string): void;
  /** Called when the archive is whole and on the disk, and only its name is missing. */
  whole(): Promise<void>;
}

/** Writes the archive of an installation. The file has its name only when it is whole. Throws BackupRefused, or Error for a volume. */
export async function packInstallation(file: string, options: PackOptions): Promise<MoveManifest> {
  const { backup, passphrase, progress } = options;
  const mark = { format: MOVE.format, release: RELEASE };
  const archive = await ArchiveWriter.open(
    file,
    MOVE,
    mark,
    passphrase === undefined ? undefined : encryption(passphrase),
  );
  const add = async (folder: string, content: AsyncIterable<Buffer>) => {
    let bytes = 0;
    const counted = (async function* () {
      for await (const chunk of content)
        for (let at = 0; at < chunk.length; at += MOST_CHUNK) {
          const piece = chunk.subarray(at, at + MOST_CHUNK);
          bytes += piece.length;
          yield piece;
        }
    })();
    const parts: Part[] = await archive.add(folder, 'part', counted);
    return { bytes, parts };
  };
  try {
    progress('Packing the database');
    const { takenAt, release, migrations, installation } = backup.manifest;
    const database = {
      takenAt,
      release,
      migrations,
      installation,
      diskBytes: backup.diskBytes,
      ...(await add(DATABASE, createReadStream(backup.file))),
    };
    progress('Packing the files');
    const files = await add(FILES, packFiles(options.settings));
    const volumes: PackedVolume[] = [];
    for (const [index, { read, ...volume }] of options.volumes.entries()) {
      progress(`Packing volume ${index + 1} of ${options.volumes.length}`);
      volumes.push({ ...volume, ...(await add(folderOf(volume), checkedTar(volume.id, read()))) });
    }
    const manifest: MoveManifest = {
      ...mark,
      id: options.id,
      packedAt: new Date().toISOString(),
      machine: hostname(),
      asRoot: process.getuid?.() === 0,
      database,
      files,
      volumes,
    };
    await archive.finish(manifest, options.whole);
    return manifest;
  } catch (error) {
    await archive.abandon();
    throw error;
  }
}

/** Archive of an installation, verified. */
export interface VerifiedArchive {
  manifest: MoveManifest;
  /** Reads the content of each folder once, in the order of the archive; `each` must read it to its end. */
  read(each: (folder: string, content: AsyncIterable<Buffer>) => Promise<void>): Promise<void>;
}

/**
 * Reads the whole archive. Throws BackupRefused for what is no archive of an installation, is not what was written, or holds what would
 * be written outside of its place.
 */
export async function verifyInstallation(file: string, passphrase: string | undefined): Promise<VerifiedArchive> {
  const archive: ArchiveFile<MoveManifest> = { file, kind: MOVE, change: decryption(file, passphrase) };
  const refused = (error: unknown) => {
    if (error instanceof BackupRefused || (error as NodeJS.ErrnoException).code) return error;
    return new BackupRefused(`${file} is refused. ${(error as Error).message}`, error);
  };
  const checks = new Map<string, { bytes: number; tar: TarCheck | null }>();
  const look = async (name: string, content: Buffer) => {
    const folder = folderOfPart(name);
    const check = checks.get(folder) ?? { bytes: 0, tar: tarOf(folder) };
    checks.set(folder, check);
    check.bytes += content.length;
    await check.tar?.write(content);
  };
  try {
    const manifest = await verify(archive, look);
    for (const { tar } of checks.values()) await tar?.end();
    const sizes = new Map([...checks].map(([folder, { bytes }]) => [folder, bytes]));
    refuseOther(file, manifest, sizes);
    return { manifest, read: (each) => readFolders(archive, manifest, each) };
  } catch (error) {
    throw refused(error);
  }
}

const tarOf = (folder: string): TarCheck | null => {
  if (folder === DATABASE) return null;
  return folder === FILES ? new TarCheck(FILES, refuseFile) : new TarCheck(folder.split('/').at(-1)!);
};

/** Refuses a manifest that names parts in folders of others, or volumes that no runtime has. */
function refuseOther(file: string, manifest: MoveManifest, sizes: Map<string, number>): void {
  const { database, files, volumes } = manifest;
  const named = [
    { folder: DATABASE, ...database },
    { folder: FILES, ...files },
    ...volumes.map((volume) => ({ folder: folderOf(volume), ...volume })),
  ];
  const isRight =
    volumes.every(({ runtime, id }) => /^(?:docker|host)$/.test(runtime) && /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)) &&
    new Set(named.map(({ folder }) => folder)).size === named.length &&
    named.every(
      ({ folder, parts, bytes }) =>
        (sizes.get(folder) ?? 0) === bytes && parts.every(({ name }) => folderOfPart(name) === folder),
    );
  if (!isRight)
    throw new BackupRefused(`${file} is damaged (its manifest does not fit its content): pack or copy it again.`);
}

async function readFolders(
  archive: ArchiveFile<MoveManifest>,
  manifest: MoveManifest,
  each: (folder: string, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const parts = readParts(archive, manifest);
  let next = await parts.next();
  try {
    while (!next.done) {
      const folder = folderOfPart(next.value.name);
      const content = (async function* () {
        while (!next.done && folderOfPart(next.value.name) === folder) {
          yield next.value.content;
          next = await parts.next();
        }
      })();
      await each(folder, content);
      if (!next.done && folderOfPart(next.value.name) === folder)
        throw new Error(`The content of ${folder} was not read to its end.`);
    }
  } finally {
    await parts.return(undefined);
  }
}
