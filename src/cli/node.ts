import { listNodes, type NodeOverview } from '#clusters/nodes.ts';
import { print, printAside } from '#cli/print.ts';
import { printTable } from '#cli/table.ts';
import { readDatabase } from '#platform/database/inspect.ts';
import { drainNode, undrainNode, type ChangedNode, type Refusal } from '#platform/installation/drain.ts';
import type { Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface NodeOptions {
  json?: true;
}

const HEADS = ['NODE', 'ID', 'STATE', 'SEEN', 'CLUSTERS', 'RUNNING', 'WAITING'];

/** Prints each node with its state, its last sign of life, and what runs and waits there. */
export async function listNodesCommand(settings: Settings, { json }: NodeOptions): Promise<void> {
  const nodes = await readDatabase(settings, listNodes);
  if (json) return print(JSON.stringify(nodes.map(toJson), null, 2));
  printTable([HEADS, ...nodes.map(rowOf)]);
}

/** Drains a node and prints what still runs there. */
export async function drainNodeCommand(settings: Settings, name: string, options: NodeOptions): Promise<void> {
  await change(settings, options, (db) => drainNode(db, name), {
    changed: (node) => `Drained ${node.name}: it begins nothing new. ${stillRunning(node)}`,
    unchanged: (node) => `${node.name} is drained since ${node.drainedAt!.toISOString()}. ${stillRunning(node)}`,
  });
}

/** Ends the drain of a node. */
export async function undrainNodeCommand(settings: Settings, name: string, options: NodeOptions): Promise<void> {
  await change(settings, options, (db) => undrainNode(db, name), {
    changed: (node) => `Undrained ${node.name}: it takes work again.`,
    unchanged: (node) => `${node.name} is not drained.`,
  });
}

interface Texts {
  changed(node: NodeOverview): string;
  unchanged(node: NodeOverview): string;
}

async function change(
  settings: Settings,
  { json }: NodeOptions,
  write: (db: Database) => Promise<ChangedNode | Refusal>,
  texts: Texts,
): Promise<void> {
  const result = await readDatabase(settings, async (db) => ({ written: await write(db), nodes: await listNodes(db) }));
  const { written } = result;
  if ('refusal' in written) throw new Error(written.refusal);
  const node = result.nodes.find(({ id }) => id === written.id)!;
  if (json) return print(JSON.stringify(toJson(node), null, 2));
  print(written.isChanged ? texts.changed(node) : texts.unchanged(node));
  if (node.isLost) printAside(`${node.name} is lost: it was seen last at ${node.seenAt.toISOString()}.`);
}

function stillRunning({ running }: NodeOverview): string {
  if (running === 0) return 'Nothing runs there.';
  return `${running === 1 ? '1 thing still runs' : `${running} things still run`} there; \`quarterdeck node list\` shows when it has ended.`;
}

const stateOf = ({ drainedAt, isLost }: NodeOverview): string =>
  [isLost ? 'lost' : 'ready', ...(drainedAt ? ['drained'] : [])].join(', ');

const rowOf = (node: NodeOverview): string[] => [
  node.name,
  node.id,
  stateOf(node),
  node.seenAt.toISOString(),
  String(node.clusters),
  String(node.running),
  String(node.waiting),
];

const toJson = ({ drainedAt, seenAt, isLost, ...node }: NodeOverview) => ({
  ...node,
  lost: isLost,
  drained_at: drainedAt,
  seen_at: seenAt,
});
