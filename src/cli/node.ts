import { setTimeout as sleep } from 'node:timers/promises';
import { listNodes, type NodeOverview } from '#clusters/nodes.ts';
import { print, printAside } from '#cli/print.ts';
import { Progress } from '#cli/progress.ts';
import { printTable } from '#cli/table.ts';
import { readDatabase } from '#platform/database/inspect.ts';
import { drainNode, undrainNode, type ChangedNode, type Refusal } from '#platform/installation/drain.ts';
import type { Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';

export interface NodeOptions {
  json?: true;
}

export interface DrainOptions extends NodeOptions {
  /** Seconds to wait until nothing runs there; absent for not waiting. */
  wait?: number;
}

const LOOK_MS = 1000;

const HEADS = ['NODE', 'ID', 'STATE', 'SEEN', 'CLUSTERS', 'RUNNING', 'WAITING'];

/** Prints each node with its state, its last sign of life, and what runs and waits there. */
export async function listNodesCommand(settings: Settings, { json }: NodeOptions): Promise<void> {
  const nodes = await readDatabase(settings, listNodes);
  if (json) return print(JSON.stringify(nodes.map(toJson), null, 2));
  printTable([HEADS, ...nodes.map(rowOf)]);
}

/**
 * Drains a node and prints what still runs there. With `wait` it returns when nothing runs there any longer, and throws if something does
 * after that time; the node stays drained.
 */
export async function drainNodeCommand(settings: Settings, name: string, options: DrainOptions): Promise<void> {
  const { wait } = options;
  await change(settings, options, (db) => drainNode(db, name), {
    until: wait === undefined ? undefined : (node) => untilIdle(settings, node, wait),
    changed: (node) => `Drained ${node.name}: it begins nothing new. ${stillRunning(node)}`,
    unchanged: (node) => `${node.name} is drained since ${node.drainedAt!.toISOString()}. ${stillRunning(node)}`,
  });
}

async function untilIdle(settings: Settings, node: NodeOverview, seconds: number): Promise<NodeOverview> {
  const progress = new Progress();
  let told = 0;
  try {
    for (const end = Date.now() + seconds * 1000; ; await sleep(LOOK_MS)) {
      const nodes = await readDatabase(settings, listNodes);
      const present = nodes.find(({ id }) => id === node.id);
      if (!present) throw new Error(`${node.name} is no longer among the nodes.`);
      if (!present.drainedAt) throw new Error(`The drain of ${node.name} was ended meanwhile.`);
      if (present.running === 0) return present;
      if (Date.now() >= end) throw new Error(`${node.name} stays drained. ${stillRunning(present)}`);
      if (present.running !== told) progress.show(`Waiting for ${count(present)} on ${node.name}`);
      told = present.running;
    }
  } finally {
    progress.clear();
  }
}

/** Ends the drain of a node. */
export async function undrainNodeCommand(settings: Settings, name: string, options: NodeOptions): Promise<void> {
  await change(settings, options, (db) => undrainNode(db, name), {
    changed: (node) => `Undrained ${node.name}: it takes work again.`,
    unchanged: (node) => `${node.name} is not drained.`,
  });
}

interface Told {
  /** Waits before the node is told of, and returns it as it is then. */
  until?: (node: NodeOverview) => Promise<NodeOverview>;
  changed(node: NodeOverview): string;
  unchanged(node: NodeOverview): string;
}

async function change(
  settings: Settings,
  { json }: NodeOptions,
  write: (db: Database) => Promise<ChangedNode | Refusal>,
  told: Told,
): Promise<void> {
  const result = await readDatabase(settings, async (db) => ({ written: await write(db), nodes: await listNodes(db) }));
  const { written } = result;
  if ('refusal' in written) throw new Error(written.refusal);
  const changed = result.nodes.find(({ id }) => id === written.id)!;
  const node = told.until ? await told.until(changed) : changed;
  if (json) return print(JSON.stringify(toJson(node), null, 2));
  print(written.isChanged ? told.changed(node) : told.unchanged(node));
  if (node.isLost) printAside(`${node.name} is lost: it was seen last at ${node.seenAt.toISOString()}.`);
}

function stillRunning(node: NodeOverview): string {
  if (node.running === 0) return 'Nothing runs there.';
  return `${count(node)} still ${node.running === 1 ? 'runs' : 'run'} there; \`quarterdeck node list\` shows when it has ended.`;
}

const count = ({ running }: NodeOverview): string => (running === 1 ? '1 thing' : `${running} things`);

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
