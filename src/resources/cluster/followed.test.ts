import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '#platform/database/index.ts';
import { FollowedClusters } from '#resources/cluster/followed.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const clusterOf = ({ organizationId }: Actor) =>
  app.db.selectFrom('cluster').select('id').where('organization_id', '=', organizationId).executeTakeFirstOrThrow();

test('the followers of a cluster are told its status although that of another organization cannot be read', async () => {
  const [broken, sound] = [await app.organization(), await app.organization()];
  const absent = openDatabase({ config: { ...app.databaseConfig, database: 'absent' } });
  const followed = new FollowedClusters();
  const leave = new AbortController();
  const told: string[] = [];
  const follow = async (actor: Actor, db = app.db) => {
    const { id } = await clusterOf(actor);
    const peer = { signal: leave.signal, send: async (text: string | Buffer) => void told.push(String(text)) };
    return [followed.follow({ ...app.platform, db }, { id, organizationId: actor.organizationId }, peer), id] as const;
  };
  const [first] = await follow(broken, absent.db);
  const [second, id] = await follow(sound);
  onTestFinished(async () => {
    leave.abort();
    await Promise.all([first, second]);
    await absent.close();
  });
  await expect.poll(() => told.map((text) => JSON.parse(text).cluster_id)).toEqual([id]);
});
