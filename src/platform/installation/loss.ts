import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { isLost } from '#platform/installation/nodes.ts';

/** Hours after which a lost node that nothing needs is forgotten, such as that of a replaced container. */
const FORGOTTEN_HOURS = 24;

interface NoticedNode {
  id: string;
  name: string;
  seenAt: Date;
}

const NOTICED = sql`n.id, n.name, n.seen_at as "seenAt"`;

/** Logs each loss and each return of a node once, whichever process notices it. */
export async function noticeNodes({ db, log }: Pick<Platform, 'db' | 'log'>): Promise<void> {
  const lost = await sql<NoticedNode>`update node n set lost_at = now() where n.lost_at is null and ${isLost}
    returning ${NOTICED}`.execute(db);
  for (const { id, name, seenAt } of lost.rows)
    log.warn(
      { nodeId: id, node: name, seenAt },
      'a node is lost: it shows no sign of life, and what only it can do waits for it',
    );
  const back = await sql<NoticedNode>`update node n set lost_at = null where n.lost_at is not null and not ${isLost}
    returning ${NOTICED}`.execute(db);
  for (const { id, name } of back.rows) log.info({ nodeId: id, node: name }, 'a lost node is back');
}

/** Deletes those of the nodes that were lost long ago, and returns their ids. A drained node stays: that is an order of the operator. */
export async function forgetLost(db: Database, ids: string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`delete from node n where n.id = any(${ids}::uuid[]) and ${isLost}
    and n.lost_at < now() - make_interval(hours => ${FORGOTTEN_HOURS}) and n.drained_at is null returning n.id`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}
