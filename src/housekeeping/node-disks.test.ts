import { statfsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { pino } from 'pino';
import { NodeDisks, type DiskFolder } from '#housekeeping/node-disks.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();

async function machine(folders: () => DiskFolder[]) {
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: 'machine' }).execute();
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  const disks = new NodeDisks({ platform: { db: app.db, log }, nodeId, folders });
  onTestFinished(() => disks.stop());
  const stored = () =>
    app.db.selectFrom('node_disk').selectAll().where('node_id', '=', nodeId).orderBy('holds').execute();
  return { nodeId, disks, stored, lines };
}

const data = (): DiskFolder => ({ holds: 'DATA', folder: app.platform.settings.dataDir });

test('a machine stores how full its disks are as soon as it starts, with the ratio that df tells', async () => {
  const { disks, stored } = await machine(() => [data(), { holds: 'ENGINE', folder: '/' }]);
  disks.start();
  await expect.poll(stored).toHaveLength(2);
  for (const { total_bytes: total, free_bytes: free } of await stored()) {
    expect(total).toBeGreaterThan(free);
    expect(free).toBeGreaterThan(0);
  }
  const { blocks, bfree, bavail } = statfsSync('/');
  const engine = (await stored()).find(({ holds }) => holds === 'ENGINE')!;
  const used = 100 * (1 - engine.free_bytes / engine.total_bytes);
  expect(used).toBeCloseTo((100 * (blocks - bfree)) / (blocks - bfree + bavail), 0);
});

test('a later measurement takes the place of the one before, and an engine that is gone is forgotten after an hour', async () => {
  const folders: DiskFolder[] = [data(), { holds: 'ENGINE', folder: '/' }];
  const { nodeId, disks, stored } = await machine(() => folders);
  await disks.record();
  folders.pop();
  const age = (text: string) =>
    sql`update node_disk set measured_at = now() - ${text}::interval where node_id = ${nodeId}`.execute(app.db);
  await age('59 minutes');
  await disks.record();
  expect((await stored()).map(({ holds }) => holds)).toEqual(['DATA', 'ENGINE']);
  expect((await stored())[0]!.measured_at.getTime()).toBeGreaterThan(Date.now() - 60_000);
  await age('61 minutes');
  await disks.record();
  expect((await stored()).map(({ holds }) => holds)).toEqual(['DATA']);
});

test('a disk that cannot be measured is told in the log, and no disk is stored as if it were', async () => {
  const { disks, stored, lines } = await machine(() => [data(), { holds: 'ENGINE', folder: '/no/such/folder' }]);
  await expect(disks.record()).rejects.toThrow('ENOENT');
  disks.start();
  await expect.poll(() => lines).toEqual(['cannot record how full the disks of this machine are']);
  expect(await stored()).toEqual([]);
});
