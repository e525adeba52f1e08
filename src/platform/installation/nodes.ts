import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { newId } from '#kernel/ids.ts';
import { writeAtomically } from '#kernel/private-files.ts';
import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Hours after which a machine that was not seen is taken for gone. */
const SEEN_HOURS = 1;

/** Seconds without a sign of life after which a machine is lost: some heartbeats, or the time of a restart. */
const LOST_SECONDS = 120;

/** Condition: node `n` is lost. */
export const isLost = sql<boolean>`(n.seen_at < now() - make_interval(secs => ${sql.lit(LOST_SECONDS)}))`;

/** Returns the id of this machine, kept in the data directory: clusters that live on it carry it. Commands call it too: it is no sign of life. */
export async function ensureNode({ db, settings }: Pick<Platform, 'db' | 'settings'>): Promise<string> {
  const file = path.join(settings.dataDir, 'node-id');
  if (!existsSync(file)) writeAtomically(file, `${newId()}\n`);
  const id = readFileSync(file, 'utf8').trim();
  await db
    .insertInto('node')
    .values({ id, name: hostname(), is_temporary: settings.temporaryData })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({ name: hostname(), is_temporary: settings.temporaryData }),
    )
    .execute();
  return id;
}

/** Returns the names of the other machines that were seen lately. */
export async function listOtherMachines(db: Database, nodeId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('node')
    .select('name')
    .where('id', '<>', nodeId)
    .where('seen_at', '>', sql<Date>`now() - make_interval(hours => ${SEEN_HOURS})`)
    .orderBy('name')
    .execute();
  return rows.map(({ name }) => name);
}

/** Removes a machine whose files end with its process, so that no work waits for it. A drained one stays: that is an order of the operator. */
export const leave = (db: Database, nodeId: string) =>
  db.deleteFrom('node').where('id', '=', nodeId).where('drained_at', 'is', null).execute();
