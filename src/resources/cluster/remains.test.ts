import { expect, test } from 'vitest';
import { connectionVersion, openConnection } from '#resources/cluster/index.ts';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: main, user: admin}}]
clusters: [{name: main, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: admin, user: {token: t0p-secret}}]
`;

async function makeCluster(admin: Actor): Promise<{ id: string; url: string }> {
  const body = { name: 'k8s', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'kubernetes' };
  const { id } = ok(await admin.post(`/organization/${admin.organizationId}/cluster`, body), 201);
  const url = `/organization/${admin.organizationId}/cluster/${id}`;
  ok(await admin.call('PUT', `${url}/kubeconfig`, KUBECONFIG, { 'content-type': 'application/x-yaml' }), 204);
  return { id, url };
}

/** Something that is left on a cluster of an environment that is gone. */
const bury = (admin: Actor, clusterId: string) =>
  app.db
    .insertInto('tombstone')
    .values({
      kind: 'ENVIRONMENT',
      organization_id: admin.organizationId,
      project_id: newId(),
      environment_id: newId(),
      runtime: 'kubernetes',
      cluster_id: clusterId,
      number: 1,
    }) // prettier-ignore
    .returning('id')
    .executeTakeFirstOrThrow();

const connection = async (id: string) => [
  (await openConnection(app.platform, id))?.token,
  (await connectionVersion(app.platform, id)) !== null,
];

test('a deleted cluster is reached until what is left there is removed, and then no longer', async () => {
  const admin = await app.organization();
  const { id, url } = await makeCluster(admin);
  const left = [await bury(admin, id), await bury(admin, id)];
  ok(await admin.delete(url), 204);
  expect(await connection(id)).toEqual(['t0p-secret', true]);
  const row = await app.db.selectFrom('cluster_remains').selectAll().where('cluster_id', '=', id).executeTakeFirst();
  expect(row!.kubeconfig.includes('t0p-secret')).toBe(false);
  for (const [n, { id: tombstone }] of left.entries()) {
    await app.db.deleteFrom('tombstone').where('id', '=', tombstone).execute();
    expect(await connection(id)).toEqual(n === 0 ? ['t0p-secret', true] : [undefined, false]);
  }
});

test('the credentials of a cluster on which nothing is left go with it, and those of remains with the organization', async () => {
  const admin = await app.organization();
  const { id, url } = await makeCluster(admin);
  ok(await admin.delete(url), 204);
  expect(await connection(id)).toEqual([undefined, false]);

  const other = await makeCluster(admin);
  await bury(admin, other.id);
  const kept = await makeCluster(await app.organization());
  ok(await admin.delete(other.url), 204);
  await app.db.deleteFrom('organization').where('id', '=', admin.organizationId).execute();
  expect([await connection(other.id), await connection(kept.id)]).toEqual([
    [undefined, false],
    ['t0p-secret', true],
  ]);
});
