import { open } from 'node:fs/promises';
import type { Commit } from '#deployments/index.ts';
import type { Database } from '#platform/database/index.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import * as queries from '#services/sources/uploads/queries.ts';
import type { FolderGit } from '#services/sources/uploads/store.ts';

/** Returns the commit if it is a folder that was uploaded for the service. */
export async function findUploadedCommit(
  db: Database,
  { organizationId, serviceId, commitId }: { organizationId: string; serviceId: string; commitId: string },
): Promise<Commit | undefined> {
  if (!/^[0-9a-f]+$/.test(commitId)) return undefined;
  const upload = await queries.findUploadByCommit(db, { organizationId, serviceId }, commitId);
  return (
    upload && {
      id: upload.commit_id,
      date: upload.committed_at.toISOString(),
      author: upload.author,
      message: upload.message,
      tag: '',
      uploaded: true,
    }
  );
}

interface UploadCheckout extends queries.UploadsOf {
  commit: string;
  directory: string;
  signal: AbortSignal;
}

/** Writes the files of an uploaded folder into a directory. Throws RuntimeError `failed` for one that is no longer kept. */
export async function checkoutUpload(db: Database, git: FolderGit, request: UploadCheckout): Promise<void> {
  const upload = await queries.findUploadByCommit(db, request, request.commit);
  if (!upload) throw goneOf(request.commit);
  await git.unpackFolder(request, async (file) => {
    const pack = await open(file, 'wx', 0o600);
    try {
      let bytes = 0;
      for (let number = 0; ; number++) {
        request.signal.throwIfAborted();
        const part = await queries.findPart(db, request, upload.id, number);
        if (!part) break;
        await pack.writeFile(part.content);
        bytes += part.content.length;
      }
      // It may be removed while it is read.
      if (bytes !== Number(upload.packed_bytes)) throw goneOf(request.commit);
    } finally {
      await pack.close();
    }
  });
}

const goneOf = (commit: string) =>
  new RuntimeError('failed', `The uploaded folder ${commit} is no longer kept: upload it again.`);
