import { beforeEach, expect, test } from 'vitest';
import { databaseUrl } from '#cli/testing.ts';
import { newId } from '#kernel/ids.ts';
import { saveDiskUse } from '#housekeeping/disk-queries.ts';
import type { DiskTotals } from '#housekeeping/disk-rules.ts';
import { inspectDisk } from '#housekeeping/inspect-disk.ts';
import { useApp } from '#test/harness/app.ts';

const MIB = 2 ** 20;
const app = useApp();
beforeEach(() => app.db.deleteFrom('disk_use').execute());

function inspect(organizationDiskLimitMb: number) {
  const url = databaseUrl(app.databaseConfig, app.databaseConfig.database!);
  return inspectDisk({ ...app.platform.settings, databaseUrl: url, organizationDiskLimitMb });
}

/** Stores a measurement of a machine: MiB of volumes and images by organization. */
async function measured(machine: string, sizes: Record<string, [volumes: number, images: number]>): Promise<void> {
  const nodeId = newId();
  await app.db.insertInto('node').values({ id: nodeId, name: machine }).execute();
  const kinds = (...mebibytes: [number, number]): DiskTotals =>
    new Map((['volume', 'image'] as const).map((kind, at) => [kind, { bytes: mebibytes[at]! * MIB, isWhole: true }]));
  await saveDiskUse(app.db, nodeId, new Map(Object.entries(sizes).map(([id, of]) => [id, kinds(...of)])));
}

test('nothing is advised before the first measurement, nor where the database cannot be asked', async () => {
  expect(await inspect(0)).toEqual({ name: 'disk', state: 'ok', found: 'not measured yet', advice: [] });
  const away = 'postgresql://nobody@127.0.0.1:1/none';
  const settings = { ...app.platform.settings, databaseUrl: away, databaseDirectUrl: away };
  expect(await inspectDisk(settings)).toMatchObject({ state: 'ok', found: expect.stringMatching(/^not looked at: ./) });
});

test('the organization that takes most is named with its machine, and a single one needs no limit', async () => {
  const { organizationId } = await app.organization();
  await measured('small', { [organizationId]: [10, 20] });
  await measured('large', { [organizationId]: [300, 41] });
  expect(await inspect(0)).toEqual({
    name: 'disk',
    state: 'ok',
    found: `organization ${organizationId} takes 341 MiB on large, the most of all`,
    advice: [],
  });
});

test('several organizations without a limit are advised to have one', async () => {
  const [one, other] = [await app.organization(), await app.organization()];
  await measured('shared', { [one.organizationId]: [10, 20], [other.organizationId]: [1, 2] });
  expect(await inspect(0)).toMatchObject({
    state: 'missing',
    advice: [expect.stringMatching(/^Set QUARTERDECK_ORGANIZATION_DISK_LIMIT_MB:/)],
  });
  expect(await inspect(30)).toMatchObject({ state: 'ok', advice: [] });
});

test('each organization above the limit is named for each machine where it is, and others are not', async () => {
  const [one, other] = [await app.organization(), await app.organization()];
  await measured('first', { [one.organizationId]: [80, 40], [other.organizationId]: [50, 50] });
  await measured('second', { [one.organizationId]: [200, 0] });
  const { state, advice } = await inspect(100);
  const told = (machine: string, mebibytes: number) =>
    `The organization ${one.organizationId} takes ${mebibytes} MiB on ${machine}, more than its 100 MiB: its deployments and runs are refused.`;
  expect({ state, advice }).toEqual({ state: 'missing', advice: [told('second', 200), told('first', 120)] });
});
