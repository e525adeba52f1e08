import { newIdentity } from '#runtimes/contract/fixture.ts';
import { setImmediate as turn } from 'node:timers/promises';
import { makeRandom, seedOf } from '#test/harness/random.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClusterCache } from './cache.ts';
import { FakeApi, podStatus } from './fake-api.fixture.ts';
import { LABEL } from '../labels.ts';
import type { InformerTimes } from './informer.ts';

let api: FakeApi;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  api = await FakeApi.start();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  await api.stop();
});

/** Follows the fake cluster; tells which services changed and when it was followed. */
async function follow(times: Partial<InformerTimes> = {}) {
  const cluster = api.connect();
  const cache = new ClusterCache(cluster, { firstPauseMs: 10, spreadMs: 10, ...times });
  const changed: string[] = [];
  const turns: (string | null)[] = [];
  closing.push(
    () => cluster.connection.close(),
    () => cache.close(),
  );
  cache.use({ changed: (id) => void changed.push(id), turned: (reason) => void turns.push(reason) });
  await expect.poll(() => cache.isCurrent).toBe(true);
  const of = (serviceId: string) => cache.of({ ...newIdentity('test'), environmentId: 'n', serviceId }, 'app');
  const pods = (serviceId: string) => of(serviceId)?.pods.map(({ metadata }) => metadata.name);
  return { cache, changed, turns, pods, of };
}

describe('a cluster that is followed', () => {
  test('has what was there before, in several pages, and what comes, changes and goes', async () => {
    for (let n = 0; n < 120; n++) api.put('pods', `p${n}`, `s${n % 2}`, podStatus(true));
    const { changed, pods, of } = await follow();
    expect([pods('s0')!.length, pods('s1')!.length, api.lists('pods')]).toEqual([60, 60, 3]);
    changed.length = 0;
    api.put('pods', 'new', 's3', podStatus(false));
    await expect.poll(() => pods('s3')).toEqual(['new']);
    api.put('pods', 'new', 's3', podStatus(true));
    await expect.poll(() => of('s3')?.pods[0]?.status?.conditions?.[0]?.status).toBe('True');
    api.remove('pods', 'new');
    await expect.poll(() => pods('s3')).toEqual([]);
    expect(changed).toEqual(['s3', 's3', 's3']);
  });

  test('wakes nobody for what is not kept', async () => {
    api.put('pods', 'p', 's', podStatus(true));
    const { changed } = await follow();
    changed.length = 0;
    api.put('pods', 'p', 's', { ...podStatus(true), spec: { nodeName: 'other' } });
    api.put('pods', 'q', 't', podStatus(true));
    await expect.poll(() => changed).toEqual(['t']);
  });

  test('goes on from the last bookmark when the server ends a watch, without another list', async () => {
    const { changed, pods } = await follow({ shortestMs: 0 });
    api.bookmark('pods');
    api.put('pods', 'before', 'other');
    await expect.poll(() => changed).toEqual(['other']);
    api.end('pods');
    await expect.poll(() => api.watches('pods').length).toBe(2);
    api.put('pods', 'p', 's', podStatus(true));
    await expect.poll(() => pods('s')).toEqual(['p']);
    expect([api.lists('pods'), Number(api.watches('pods')[1]) > Number(api.watches('pods')[0])]).toEqual([1, true]);
  });

  test('is listed anew where the server has forgotten the version, and what is gone since goes', async () => {
    api.put('pods', 'gone', 's', podStatus(true));
    const { cache, changed, pods } = await follow();
    await api.stop();
    await expect.poll(() => cache.isCurrent).toBe(false);
    api.remove('pods', 'gone');
    api.put('pods', 'kept', 's', podStatus(true));
    api.oldest = 102;
    changed.length = 0;
    await api.listen();
    await expect.poll(() => pods('s')).toEqual(['kept']);
    expect([api.lists('pods'), new Set(changed)]).toEqual([2, new Set(['s'])]);
  });

  test('tells nothing while the API server is away, and goes on from where it was without a list', async () => {
    api.put('pods', 'p', 's', podStatus(true));
    const { turns, pods, of } = await follow();
    await api.stop();
    await expect.poll(() => of('s')).toBeNull();
    expect(turns).toEqual([null, expect.any(String)]);
    await api.listen();
    await expect.poll(() => pods('s')).toEqual(['p']);
    expect([api.lists('pods'), turns.at(-1)]).toEqual([1, null]);
  });

  test('is asked again where it sends nothing for too long', async () => {
    const { turns } = await follow({ idleMs: 150 });
    await expect.poll(() => api.watches('pods').length).toBeGreaterThan(1);
    expect(turns).toContain('its watch was silent for 0.15 s');
    expect(api.lists('pods')).toBe(1);
  });

  test('is listed anew where its connection leads elsewhere, or the version means nothing there', async () => {
    const { cache } = await follow();
    cache.restart();
    await expect.poll(() => [api.lists('pods'), cache.isCurrent]).toEqual([2, true]);
    api.put('services', 'other', 't');
    api.unknown = 101;
    cache.doubt();
    await expect.poll(() => [api.lists('pods'), cache.isCurrent]).toEqual([3, true]);
  });

  test('does not take objects of another namespace for those of a service', async () => {
    api.put('pods', 'p', 's', podStatus(true));
    api.put('pods', 'q', 's', { ...podStatus(true), metadata: { namespace: 'other' } });
    const { pods } = await follow();
    expect(pods('s')).toEqual(['p']);
  });

  test.each([
    '{',
    '{"hostname": "../../other"}',
    '{"hostname": "a", "serving": {"deployment": {"metadata": {}}}}',
    '{"hostname": "a", "candidate": {"deployment": {"metadata": {}, "spec": {"template": {"spec": {"containers": 1}}}}}}',
  ])('is followed on where somebody has written %s for the record of a service', async (record) => {
    api.put('pods', 'p', 's', podStatus(true));
    const { changed, cache, of } = await follow();
    changed.length = 0;
    api.put('configmaps', 'quarterdeck-t', 't', { data: { record } });
    api.put('pods', 'q', 's', podStatus(true));
    await expect.poll(() => changed).toEqual(['s']);
    expect([cache.isCurrent, of('t')?.record]).toEqual([true, null]);
  });

  test('is followed although objects of one service are too large to be read', async () => {
    const large = (megabytes: number) => ({ ...podStatus(true), spec: { text: 'x'.repeat(megabytes * 2 ** 20) } });
    for (let n = 0; n < 30; n++) api.put('pods', `p${n}`, 's', podStatus(true));
    for (let n = 0; n < 5; n++) api.put('pods', `large${n}`, 't', large(1));
    api.put('pods', 'larger', 't', large(4));
    const { cache, changed, pods } = await follow();
    expect([pods('s')!.length, pods('t')!.length]).toEqual([30, 5]);
    changed.length = 0;
    api.put('pods', 'large0', 't', large(4));
    api.put('pods', 'p0', 's', podStatus(false));
    await expect.poll(() => changed).toEqual(['s']);
    expect(cache.isCurrent).toBe(true);
  });

  test('is looked at again for drift where a field was set back by whoever changed it', async () => {
    const fields = [{ manager: 'kubectl-edit', operation: 'Update', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }];
    const deployment = (generation: number, labels = {}) => ({
      metadata: {
        generation,
        managedFields: fields,
        labels: { [LABEL.installation]: 'test', [LABEL.service]: 's', ...labels },
      },
      spec: { template: { metadata: {} } },
    });
    const owners = async () => {
      let found: string | undefined;
      await expect.poll(() => (found = of('s')?.deployment?.owners)).toBeDefined();
      return found;
    };
    api.put('deployments', 'app', 's', deployment(1));
    const { of } = await follow();
    const first = await owners();
    api.put('deployments', 'app', 's', deployment(2));
    await expect.poll(owners).not.toBe(first);
    const second = await owners();
    api.put('deployments', 'app', 's', deployment(2, { team: 'a' }));
    await expect.poll(owners).not.toBe(second);
  });

  test('is asked again where it does not answer something else', async () => {
    const { cache } = await follow();
    cache.doubt();
    await expect.poll(() => [api.watches('pods').length, cache.isCurrent]).toEqual([2, true]);
  });

  test.each([
    ['garbage', '<html>\n', 'its watch sent what is no event'],
    ['an event without an object', '{"type":"ADDED"}\n', 'its watch sent what is no event'],
    [
      'an object without a name',
      '{"type":"ADDED","object":{"metadata":{"resourceVersion":"1","labels":{}}}}\n',
      'it answers objects without a name',
    ],
    [
      'a pod that is none',
      '{"type":"ADDED","object":{"metadata":{"name":"p","resourceVersion":"1","labels":{"quarterdeck.service":"s"}},"status":{"conditions":1}}}\n',
      'it answers an object that is no Pod',
    ],
    ['an event without an end', 'x'.repeat(17 * 2 ** 20), 'an event is larger than 16 MiB'],
  ])('that sends %s is not followed, says why, and is listed again', async (_what, text, reason) => {
    api.put('pods', 'p', 's', podStatus(true));
    const { cache, turns } = await follow();
    api.send('pods', text);
    await expect.poll(() => turns).toContain(reason);
    await expect.poll(() => cache.isCurrent).toBe(true);
    expect(api.lists('pods')).toBe(2);
  });

  test('is known as it is after any series of failures', { timeout: 30_000 }, async () => {
    const seed = seedOf();
    const random = makeRandom(seed);
    const { cache, pods } = await follow({ idleMs: 200, shortestMs: 0, steadyMs: 0 });
    const names = Array.from({ length: 8 }, (_, n) => `p${n}`);
    const steps: (() => void | Promise<void>)[] = [
      () => api.put('pods', random.pick(names), 's', podStatus(random.below(2) === 0)),
      () => api.put('pods', random.pick(names), 's', podStatus(true)),
      () => {
        const [name] = api.names('pods');
        if (name !== undefined) api.remove('pods', name);
      },
      () => api.bookmark('pods'),
      () => api.end('pods'),
      () => api.forget(),
      () => cache.doubt(),
      () => api.send('pods', random.pick(['<html>\n', '{"type":"ADDED"}\n', '\n'])),
      async () => {
        await api.stop();
        await api.listen();
      },
    ];
    for (let n = 0; n < 150; n++) {
      await random.pick(steps)();
      // The cluster goes on while it is asked.
      for (let turns = random.below(60); turns > 0; turns--) await turn();
    }
    await expect
      .poll(() => pods('s')?.toSorted(), { message: `SEED=${seed}`, timeout: 15_000 })
      .toEqual(api.names('pods').toSorted());
  });

  test('that refuses to be watched is asked less and less often', async () => {
    const refuse = JSON.stringify({ code: 403, reason: 'Forbidden', message: 'pods is forbidden' });
    api.answers = Array.from({ length: 200 }, () => (_url, response) => void response.writeHead(403).end(refuse));
    const cluster = api.connect();
    const cache = new ClusterCache(cluster, { firstPauseMs: 50 });
    closing.push(
      () => cluster.connection.close(),
      () => cache.close(),
    );
    const turns: (string | null)[] = [];
    cache.use({ changed: () => undefined, turned: (reason) => void turns.push(reason) });
    await expect.poll(() => api.lists('pods')).toBe(4);
    expect([cache.isCurrent, turns[0]]).toEqual([false, 'pods is forbidden.']);
    // Four kinds, four times each within 50 + 100 + 200 ms.
    expect(api.requests.length).toBeLessThanOrEqual(20);
  });
});
