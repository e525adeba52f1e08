import { expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { drainNode, isDrained, undrainNode } from '#platform/installation/drain.ts';
import { listenForWork } from '#platform/work/index.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();

async function makeNode(name: string): Promise<string> {
  const id = newId();
  await app.db.insertInto('node').values({ id, name }).execute();
  return id;
}

const drained = async (id: string) =>
  (await app.db.selectNoFrom(isDrained(id).as('is')).executeTakeFirstOrThrow()).is as boolean;

test('a node is drained and undrained by its name or its id, and a second time changes nothing', async () => {
  const id = await makeNode('builder');
  const first = await drainNode(app.db, 'builder');
  expect(first).toEqual({ id, name: 'builder', drainedAt: expect.any(Date), isChanged: true });
  expect(await drainNode(app.db, id)).toEqual({ ...first, isChanged: false });
  expect(await drained(id)).toBe(true);
  expect(await undrainNode(app.db, id)).toMatchObject({ drainedAt: null, isChanged: true });
  expect(await undrainNode(app.db, 'builder')).toMatchObject({ drainedAt: null, isChanged: false });
  expect(await drained(id)).toBe(false);
});

test('an unknown name changes nothing and is answered with the known nodes', async () => {
  const id = await makeNode('known');
  for (const change of [drainNode, undrainNode])
    expect(await change(app.db, 'unknown')).toEqual({
      refusal: expect.stringMatching(`^Node unknown: must be the name or id of a node\\. Nodes: .*known \\(${id}\\)`),
    });
  expect(await drained(id)).toBe(false);
});

test('a name of several nodes is refused with the ids of those', async () => {
  const ids = [await makeNode('twin'), await makeNode('twin')].sort();
  expect(await drainNode(app.db, 'twin')).toEqual({
    refusal: `Node twin: is the name of 2 nodes and must be the id of one of them: twin (${ids[0]}), twin (${ids[1]}).`,
  });
  expect([await drained(ids[0]!), await drained(ids[1]!)]).toEqual([false, false]);
  expect(await drainNode(app.db, ids[1]!)).toMatchObject({ id: ids[1] });
});

test('an undrain wakes the workers of every process', async () => {
  await makeNode('sleeper');
  await drainNode(app.db, 'sleeper');
  const woken = Promise.withResolvers<void>();
  let nudges = 0;
  const listener = listenForWork(app.databaseConfig, [{ nudge: () => ++nudges > 1 && woken.resolve() }], {
    log: app.platform.log,
  });
  onTestFinished(() => listener.close());
  // The first nudge is that of the connection itself.
  await expect.poll(() => nudges).toBe(1);
  await undrainNode(app.db, 'sleeper');
  await woken.promise;
});
