import { beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { listWatchedClusters } from '#resources/cluster/index.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();
const [first, second] = [newId(), newId()];
let clusterId: string;

const watched = async (nodeId: string) =>
  (await listWatchedClusters(app.db, nodeId)).filter(({ id }) => id === clusterId);

beforeAll(async () => {
  const admin = await app.organization();
  const body = { name: 'k8s', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'kubernetes' };
  clusterId = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, body), 201).id;
});

describe('a cluster of no machine', () => {
  test('is watched by nobody before it was deployed for the first time', async () => {
    expect(await watched(first)).toEqual([]);
  });

  test('is watched by one machine, which keeps it, and by another once the first has not looked for long', async () => {
    await app.db.updateTable('cluster').set({ deployed_version: 1 }).where('id', '=', clusterId).execute();
    const claimed = await Promise.all([watched(first), watched(second)]);
    expect(claimed.flat()).toEqual([{ id: clusterId, runtime: 'kubernetes', isApart: true }]);
    const [keeper, other] = claimed[0]!.length === 1 ? [first, second] : [second, first];
    expect([(await watched(keeper)).length, (await watched(other)).length]).toEqual([1, 0]);
    await app.db
      .updateTable('cluster')
      .set({ watched_until: new Date(0) })
      .where('id', '=', clusterId)
      .execute();
    expect([(await watched(other)).length, (await watched(keeper)).length]).toEqual([1, 0]);
  });
});
