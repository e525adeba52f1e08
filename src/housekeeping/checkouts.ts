import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { sql, type Database } from '#platform/database/index.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Removes checkouts on this machine whose deployments have ended, or are gone and left a tombstone: a worker that was killed left them.
 * Folders of deployments that the database knows nothing of are left alone.
 */
export async function collectCheckouts(db: Database, directory: string): Promise<void> {
  const names = (await readdirIfThere(directory)).filter((name) => UUID.test(name));
  if (names.length === 0) return;
  const { rows } = await sql<{ id: string }>`
    select id from deployment where id = any(${names}::uuid[]) and status = 'ENDED'
    union select deployment_id from tombstone where kind = 'DEPLOYMENT' and deployment_id = any(${names}::uuid[])`.execute(
    db,
  );
  for (const { id } of rows) await rm(path.join(directory, id), { recursive: true, force: true });
}

async function readdirIfThere(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
