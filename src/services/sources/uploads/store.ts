import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { newId } from '#kernel/ids.ts';
import { readArchiveOf } from '#kernel/parsing/index.ts';
import type { ArchiveContent } from '#kernel/parsing/formats.ts';
import { AppError, badRequest, conflict } from '#kernel/errors.ts';
import type { Platform } from '#platform/context.ts';
import { brokenConstraint } from '#platform/database/index.ts';
import { Turns } from '#platform/http/turns.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import * as queries from '#services/sources/uploads/queries.ts';
import { receiveBody } from '#services/sources/uploads/receive.ts';

/** Bytes of a part of a pack in the database. */
const PART_BYTES = 2 ** 20;
const MIB = 2 ** 20;

/** Uploads of this process at a time, and those of one organization: each may take a gigabyte of disk and a processor. */
const MOST_UPLOADS = 4;
const MOST_OF_ORGANIZATION = 2;

/** Program that makes commits of folders, and folders of commits; throws RuntimeError. */
export interface FolderGit {
  importFolder<T>(
    signal: AbortSignal,
    write: (file: string, signal: AbortSignal) => Promise<void>,
    keep: (folder: PackedFolder, signal: AbortSignal) => Promise<T>,
  ): Promise<T>;
  unpackFolder(
    source: { commit: string; directory: string; signal: AbortSignal },
    fetch: (file: string) => Promise<void>,
  ): Promise<void>;
}

interface PackedFolder {
  commit: string;
  tree: string;
  /** File with the objects. */
  pack: string;
  packedBytes: number;
}

/** Folder that is uploaded for a service. */
export interface FolderToStore extends queries.UploadsOf {
  /** Tar archive, plain or packed by gzip, unread. */
  body: Readable;
  author: string;
  signal: AbortSignal;
}

/** Uploaded folder that the database holds. */
export interface StoredFolder {
  id: string;
  commitId: string;
  /** Tree of the commit: equal for equal content. */
  treeId: string;
  files: number;
  /** Unpacked size in bytes. */
  bytes: number;
}

/** Stores uploaded folders of this process, a few at a time, and of a service one after the other. */
export class FolderStore {
  readonly #platform: Platform;
  readonly #git: FolderGit;
  readonly #turns = new Turns({
    things: 'uploads',
    limit: MOST_UPLOADS,
    shareOf: () => MOST_OF_ORGANIZATION,
    hasOthersThan: () => false,
  });

  constructor(platform: Platform, git: FolderGit) {
    this.#platform = platform;
    this.#git = git;
  }

  /**
   * Reads an archive in its turn and stores a commit of it, whole and durable when this returns. Content that
   * the service has already is the commit that it was then. Removes older folders of the service that nothing needs. Throws 400 that names
   * the entry for an archive that is not taken, 413 for one that is too large, and 503 where this machine cannot read it now.
   */
  async store(folder: FolderToStore): Promise<StoredFolder> {
    const end = await this.#turns.take(folder.organizationId, folder.serviceId);
    try {
      const stored = await importFolder(this.#platform, this.#git, folder);
      // What was stored now stays: it was asked for last.
      await queries.trimUploads(this.#platform.db, this.#platform.settings.keptSourceUploads, folder);
      return stored;
    } catch (error) {
      // The work that was ended tells only that.
      if (folder.signal.aborted && !(error instanceof AppError))
        throw new AppError('unavailable', 'The upload took too long, or its connection ended.', { cause: error });
      if (!(error instanceof RuntimeError)) throw error;
      if (error.code === 'refused') throw badRequest(`archive: ${error.message}`);
      throw new AppError('unavailable', `The folder cannot be read now: ${error.message}`, { cause: error });
    } finally {
      end();
    }
  }
}

async function importFolder(platform: Platform, git: FolderGit, folder: FolderToStore): Promise<StoredFolder> {
  const { db, settings } = platform;
  const { organizationId } = folder;
  const seconds = Math.floor(platform.clock.now().getTime() / 1000);
  const commit = { author: folder.author, seconds, message: 'Uploaded folder' };
  const limits = {
    // A build could not check out more.
    mostBytes: Math.min(settings.sourceUnpackedMb, settings.checkoutLimitMb) * MIB,
    mostFiles: settings.sourceFiles,
  };
  let content: ArchiveContent | undefined;
  const write = async (output: string, signal: AbortSignal) => {
    const archive = path.join(path.dirname(output), 'archive');
    await receiveBody(folder.body, archive, { mostBytes: settings.sourceUploadMb * MIB, signal });
    content = await readArchiveOf(organizationId, archive, { output, ...commit, ...limits }, signal);
    await rm(archive);
  };
  return git.importFolder(folder.signal, write, async (packed, signal) => {
    const present = await queries.keepUploadByTree(db, folder, packed.tree);
    if (present) return viewOf(present);
    if (packed.packedBytes > settings.sourceUploadMb * MIB)
      throw badRequest(`archive: it takes more than ${settings.sourceUploadMb} MiB when git packs it.`);
    return viewOf(await insertFolder(platform, { ...folder, signal }, packed, { ...commit, ...content! }));
  });
}

async function insertFolder(
  { db }: Platform,
  folder: FolderToStore,
  { commit, tree, pack, packedBytes }: PackedFolder,
  { author, message, seconds, files, bytes }: ArchiveContent & { author: string; message: string; seconds: number },
) {
  const id = newId();
  try {
    await queries.insertUpload(db, {
      id,
      organization_id: folder.organizationId,
      service_id: folder.serviceId,
      commit_id: commit,
      tree_id: tree,
      author,
      message,
      committed_at: new Date(seconds * 1000),
      files,
      unpacked_bytes: bytes,
      packed_bytes: packedBytes,
    });
    await insertParts(db, folder, id, pack);
    const stored = await queries.markStored(db, folder, id);
    folder.signal.throwIfAborted();
    return stored;
  } catch (error) {
    await queries.deleteUpload(db, folder, id);
    const broken = brokenConstraint(error);
    // The same folder was uploaded at the same time, by way of another process.
    if (broken === 'source_upload_tree') return queries.keepUploadByTree(db, folder, tree);
    if (broken !== undefined && GONE.includes(broken)) return undefined;
    throw error;
  }
}

/** Constraints that break where the service, or the upload with it, was deleted meanwhile. */
const GONE = ['source_upload_organization_id_service_id_fkey', 'source_upload_part_organization_id_upload_id_fkey'];

async function insertParts(db: Platform['db'], folder: FolderToStore, id: string, pack: string): Promise<void> {
  const file = await open(pack);
  try {
    for (let [number, at] = [0, 0]; ; number++) {
      folder.signal.throwIfAborted();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(PART_BYTES), 0, PART_BYTES, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      const content = buffer.subarray(0, bytesRead);
      await queries.insertPart(db, { organization_id: folder.organizationId, upload_id: id, number, content });
    }
  } finally {
    await file.close();
  }
}

type Row = NonNullable<Awaited<ReturnType<typeof queries.markStored>>>;

function viewOf(row: Row | undefined): StoredFolder {
  // Its service was deleted meanwhile, or newer uploads have taken its place.
  if (!row) throw conflict('The upload was removed while it was stored: upload it again.');
  const { id, commit_id: commitId, tree_id: treeId, files, unpacked_bytes: bytes } = row;
  return { id, commitId, treeId, files, bytes: Number(bytes) };
}
