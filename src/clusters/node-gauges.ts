import { Gauge, type Registry } from 'prom-client';
import { listNodes } from '#clusters/nodes.ts';
import type { Database } from '#platform/database/index.ts';

const labelNames = ['node', 'id'];

/** Registers the gauges of the nodes of the installation; every process shows all nodes. */
export function registerNodeGauges(registry: Registry, db: Database): void {
  const registers = [registry];
  new Gauge({
    name: 'quarterdeck_node_up',
    help: '1 while a node shows signs of life, 0 once it is lost.',
    labelNames,
    registers,
    async collect() {
      this.reset();
      for (const { id, name, isLost } of await listNodes(db)) this.set({ node: name, id }, isLost ? 0 : 1);
    },
  });
  new Gauge({
    name: 'quarterdeck_node_drained',
    help: '1 while a node is drained and begins nothing new, else 0.',
    labelNames,
    registers,
    async collect() {
      this.reset();
      for (const { id, name, drainedAt } of await listNodes(db)) this.set({ node: name, id }, drainedAt ? 1 : 0);
    },
  });
}
