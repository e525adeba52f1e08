import { sql, type Database } from '#platform/database/index.ts';

/** Channel on which workers hear that a node takes work again. */
export const NODES = 'quarterdeck_nodes';

interface NodeRow {
  id: string;
  name: string;
  /** Start of the drain; null while the node takes work. */
  drainedAt: Date | null;
}

/** Node that an operator has drained or undrained. `isChanged` is false if it was in that state before. */
export interface ChangedNode extends NodeRow {
  isChanged: boolean;
}

/** Reason for which no node was changed; it lists the nodes that could be meant. */
export interface Refusal {
  refusal: string;
}

/** Condition for claims: the node is drained, so its workers begin nothing new (docs/decisions/0081-a-drained-node-begins-nothing.md). */
export const isDrained = (nodeId: string) =>
  sql<boolean>`exists (select from node where id = ${nodeId} and drained_at is not null)`;

/** Drains the node with that name or id: its workers begin nothing new from now on. */
export const drainNode = (db: Database, name: string): Promise<ChangedNode | Refusal> =>
  db.transaction().execute((inside) => changeDrain(inside, name, true));

/** Ends the drain of the node with that name or id, and wakes all workers. */
export const undrainNode = (db: Database, name: string): Promise<ChangedNode | Refusal> =>
  db.transaction().execute(async (inside) => {
    const node = await changeDrain(inside, name, false);
    await sql`select pg_notify(${NODES}, '')`.execute(inside);
    return node;
  });

async function changeDrain(db: Database, name: string, toDrained: boolean): Promise<ChangedNode | Refusal> {
  const node = await lockNode(db, name);
  if ('refusal' in node) return node;
  if ((node.drainedAt !== null) === toDrained) return { ...node, isChanged: false };
  const { drainedAt } = await db
    .updateTable('node')
    .set({ drained_at: toDrained ? sql<Date>`now()` : null })
    .where('id', '=', node.id)
    .returning('drained_at as drainedAt')
    .executeTakeFirstOrThrow();
  return { ...node, drainedAt, isChanged: true };
}

/** Locks the row of the node with that name or id. */
async function lockNode(db: Database, name: string): Promise<NodeRow | Refusal> {
  const nodes = await db
    .selectFrom('node')
    .select(['id', 'name', 'drained_at as drainedAt'])
    .orderBy('name')
    .orderBy('id')
    .forUpdate()
    .execute();
  const found = nodes.filter((node) => node.id === name || node.name === name);
  if (found.length === 1) return found[0]!;
  const list = (of: NodeRow[]) => of.map((node) => `${node.name} (${node.id})`).join(', ');
  return {
    refusal:
      found.length === 0
        ? `Node ${name}: must be the name or id of a node. Nodes: ${list(nodes)}.`
        : `Node ${name}: is the name of ${found.length} nodes and must be the id of one of them: ${list(found)}.`,
  };
}
