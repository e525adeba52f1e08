/**
 * Publishes the TCP and UDP ports of a service: `node program.ts <folder>`, run under a shim so that connections outlive the control plane.
 * Reads `table.json` of the folder at its start and whenever it changes, and writes the outcome to `status.json`.
 */
import { watch } from 'node:fs';
import { join } from 'node:path';
import { Forwarder } from '#runtimes/host/publish/forwarder.ts';
import { readTable, STATUS_FILE, TABLE_FILE, tableName, writeStatus } from '#runtimes/host/publish/table.ts';

const folder = process.argv[2]!;
const forwarder = new Forwarder();
let present = '';
let working: Promise<void> = Promise.resolve();

async function reload(): Promise<void> {
  const table = readTable(join(folder, TABLE_FILE));
  const name = tableName(table);
  if (name === present) return;
  const errors = await forwarder.apply(table);
  // The next look tries failed ports again.
  present = Object.keys(errors).length ? '' : name;
  writeStatus(join(folder, STATUS_FILE), { table: name, errors });
}

const look = () => {
  working = working.then(reload);
};

watch(folder, (_, name) => {
  if (name === TABLE_FILE) look();
});
setInterval(look, 2_000);
look();
