import type { Platform } from '#platform/context.ts';
import { sql, type Database } from '#platform/database/index.ts';
import { isLost } from '#platform/installation/nodes.ts';

/** Hours after which a lost node that owns nothing is forgotten, such as that of a replaced container. */
const FORGOTTEN_HOURS = 24;

interface NoticedNode {
  id: string;
  name: string;
  seenAt: Date;
}

/** Logs each loss and each return of a node once, whichever process notices it. Forgets lost nodes that nothing refers to. */
export async function noticeNodes({ db, log }: Pick<Platform, 'db' | 'log'>): Promise<void> {
  for (const { id, name, seenAt } of await markLost(db))
    log.warn(
      { nodeId: id, node: name, seenAt },
      'a node is lost: it shows no sign of life, and what only it can do waits for it',
    );
  for (const { id, name } of await markBack(db)) log.info({ nodeId: id, node: name }, 'a lost node is back');
  for (const { id, name } of await forgetLost(db))
    log.info({ nodeId: id, node: name }, 'a lost node without clusters is forgotten');
}

async function markLost(db: Database): Promise<NoticedNode[]> {
  const { rows } = await sql<NoticedNode>`update node n set lost_at = now() where n.lost_at is null and ${isLost}
    returning n.id, n.name, n.seen_at as "seenAt"`.execute(db);
  return rows;
}

async function markBack(db: Database): Promise<NoticedNode[]> {
  const { rows } = await sql<NoticedNode>`update node n set lost_at = null where n.lost_at is not null and not ${isLost}
    returning n.id, n.name, n.seen_at as "seenAt"`.execute(db);
  return rows;
}

/** Deletes nodes that were lost long ago. A drain is an order of the operator's: it is kept, as is what has to be removed on the node. */
async function forgetLost(db: Database): Promise<NoticedNode[]> {
  const { rows } = await sql<NoticedNode>`delete from node n
    where n.lost_at < now() - make_interval(hours => ${FORGOTTEN_HOURS}) and ${isLost} and n.drained_at is null
      and not exists (select from cluster where node_id = n.id)
      and not exists (select from tombstone where node_id = n.id)
      and not exists (select from database_backup where node_id = n.id)
      and not exists (select from database_backup_file where node_id = n.id)
    returning n.id, n.name, n.seen_at as "seenAt"`.execute(db);
  return rows;
}
