import { request } from 'node:http';
import { expect, test } from 'vitest';
import { hostOf, newContext, newIdentity, nextSpec } from '#runtimes/contract/fixture.ts';
import { applyOn, mountFolder, startTraffic, stored, until } from '#runtimes/contract/setup.ts';
import type { ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';

/** Defines the tests of stop, restart, remove, crashes, and use by a second process. */
export function describeLifecycle(contract: ContractOf, options: ContractOptions): void {
  test('stopped it serves no more, stopping again is done, and a deploy starts it again', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    await c.runtime.stop(handle.identity, handle, newContext());
    const observation = await c.runtime.observe(handle);
    expect(observation.state).toBe('stopped');
    expect(observation.instances.filter((instance) => instance.state !== 'stopped')).toEqual([]);
    expect([404, 502, 503]).toContain((await c.get(spec, '/')).status);
    await c.runtime.stop(handle.identity, handle, newContext());
    expect((await c.runtime.observe(handle)).state).toBe('stopped');
    const next = nextSpec(spec);
    expect(await c.running(await c.apply(next))).toMatchObject({ state: 'running', generation: 2 });
    expect(await c.ask(next, '/')).toMatchObject({ release: '2' });
  });

  test('restarted it has new processes of the same release and no request failed', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const before = await c.ask(spec, '/');
    const stop = startTraffic(() => c.get(spec, '/wait?ms=20'));
    const restarted = await c.restart(handle, 2);
    const { failures } = await stop();
    expect(failures).toEqual([]);
    const after = await c.ask(spec, '/');
    expect(after['process']).not.toBe(before['process']);
    expect(after['release']).toBe('1');
    await c.restart(restarted, 2);
    expect((await c.ask(spec, '/'))['process'], 'asked again for the same deployment').toBe(after['process']);
    const observation = await c.running(restarted);
    expect(observation).toMatchObject({ state: 'running', generation: 1 });
    expect(observation.instances).toHaveLength(1);
  });

  test('an instance that ends by itself is started again, and its last end is told', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const before = await c.ask(spec, '/');
    await c.ask(spec, '/exit?code=7');
    const observation = await until(
      () => c.runtime.observe(handle),
      (seen) => seen.state === 'running' && seen.instances[0]!.restarts > 0,
      30_000,
    );
    expect(observation.instances[0]!.lastExit).toMatchObject({ code: 7 });
    expect((await c.served(spec))['process']).not.toBe(before['process']);
  });

  test('removed nothing is left, and removing what is absent is done', async (current) => {
    const c = contract(current);
    const spec = c.spec({ storage: [{ id: 'd4e5f6', mountPath: mountFolder(options).mount, sizeGib: 1 }] });
    const handle = await c.apply(spec);
    expect(await c.subject.leftovers(spec.identity)).not.toEqual([]);
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(await c.runtime.observe(handle)).toMatchObject({ state: 'absent', generation: null, instances: [] });
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
    expect((await c.get(spec, '/')).status).toBe(404);
    await c.runtime.remove(spec.identity, handle, newContext());
    await c.runtime.remove(newIdentity(c.setup.installation), null, newContext());
  });

  test('what a failed first apply left behind goes by identity alone', async (current) => {
    const c = contract(current);
    const spec = c.spec({ environment: { FAIL_START: 'yes' }, readyTimeoutSeconds: 6 });
    await expect(c.apply(spec)).rejects.toMatchObject({ code: 'not_ready' });
    await c.runtime.remove(spec.identity, null, newContext());
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
    expect((await c.get(spec, '/')).status).toBe(404);
  });

  test('what an apply left running whose handle nobody kept is stopped by identity alone, and keeps its volumes', async (current) => {
    const c = contract(current);
    const spec = c.spec({ storage: [{ id: 'e5f6a7', mountPath: mountFolder(options).mount, sizeGib: 1 }] });
    const handle = await c.apply(spec);
    const next = nextSpec(spec);
    await c.runtime.stop(next.identity, null, newContext());
    const { instances } = await c.runtime.observe(handle);
    expect(instances.filter((instance) => instance.state !== 'stopped')).toEqual([]);
    expect([404, 502, 503]).toContain((await c.get(spec, '/')).status);
    expect(await c.subject.leftovers(spec.identity)).not.toEqual([]);
    await c.runtime.stop(newIdentity(c.setup.installation), null, newContext());
    expect(await c.running(await c.apply(next))).toMatchObject({ state: 'running', generation: 2 });
  });

  test('what is there is listed by its identity, whoever asks, and what is gone is not', async (current) => {
    const c = contract(current);
    const [running, stopped, removed] = [c.spec(), c.spec(), c.spec()];
    const listed = async () => {
      const other = await c.subject.reopen();
      try {
        return new Map((await other.list!()).map((found) => [found.identity.serviceId, found]));
      } finally {
        await other.close();
      }
    };
    await c.apply(running);
    const next = nextSpec(running);
    await c.apply(next);
    await c.runtime.stop(stopped.identity, await c.apply(stopped), newContext());
    await c.runtime.remove(removed.identity, await c.apply(removed), newContext());
    const found = await listed();
    expect(found.get(running.identity.serviceId)).toEqual({
      identity: next.identity,
      displayName: running.displayName,
      state: 'running',
    });
    expect(found.get(stopped.identity.serviceId)).toMatchObject({ identity: stopped.identity, state: 'stopped' });
    expect(found.has(removed.identity.serviceId)).toBe(false);
    for (const { identity } of found.values()) expect(identity.installation).toBe(c.setup.installation);
  });

  test('removing one service leaves its siblings running', async (current) => {
    const c = contract(current);
    const first = c.spec();
    const kept = await c.apply(first);
    const identity = { ...newIdentity(c.setup.installation), environmentId: first.identity.environmentId };
    const second = c.spec({ identity });
    await c.runtime.remove(identity, await c.apply(second), newContext());
    expect(await c.running(kept)).toMatchObject({ state: 'running' });
    expect(await c.ask(first, '/')).toMatchObject({ release: '1' });
  });

  test('another process goes on from the stored handle', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = stored(await c.apply(spec));
    const before = await c.ask(spec, '/');
    const other = await c.subject.reopen();
    try {
      expect(await other.observe(handle)).toMatchObject({ state: 'running', generation: 1 });
      expect(stored(await applyOn(other, spec, newContext()))).toEqual(handle);
      expect(await c.ask(spec, '/')).toEqual(before);
      await other.stop(handle.identity, handle, newContext());
      expect((await c.runtime.observe(handle)).state).toBe('stopped');
      await other.remove(spec.identity, handle, newContext());
      expect((await c.runtime.observe(handle)).state).toBe('absent');
    } finally {
      await other.close();
    }
  });

  test('an attempt that lost its claim takes nothing away from the one that goes on with its work', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const readiness = { ...spec.readiness!, initialDelaySeconds: 3 };
    const slow = nextSpec(spec, { readiness });
    const attempt = (number: number, abort: AbortController) => {
      return { ...newContext(abort.signal), attempt: { number, holds: () => !abort.signal.aborted } };
    };
    const before = (await c.runtime.observe(handle)).instances.map(({ name }) => name);
    const other = await c.subject.reopen();
    try {
      const lost = new AbortController();
      const first = applyOn(c.runtime, slow, attempt(1, lost)).catch((error: Error) => error);
      await until(
        () => c.runtime.observe(handle),
        ({ instances }) => instances.some(({ name }) => !before.includes(name)),
      );
      const second = applyOn(other, slow, attempt(2, new AbortController()));
      lost.abort('lost');
      await first;
      expect(await other.observe(await second)).toMatchObject({ state: 'running', generation: 2 });
      expect(await c.ask(slow, '/')).toMatchObject({ release: '2' });
    } finally {
      await other.close();
    }
  });

  test('the upstreams of its routes can be reached, and go with the service', async (current) => {
    const c = contract(current);
    if (c.subject.get) return;
    const spec = c.spec({ instances: { min: 2, max: 2 } });
    const handle = await c.apply(spec);
    const upstreams = c.setup.router.upstreams(hostOf(spec.identity));
    expect(upstreams).toHaveLength(2);
    for (const upstream of upstreams) await answers(upstream.address, upstream.port);
    expect(c.setup.router.services.get(spec.identity.serviceId)?.generation).toBe(spec.identity.generation);
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(c.setup.router.services.has(spec.identity.serviceId)).toBe(false);
    for (const upstream of upstreams) await expect(answers(upstream.address, upstream.port)).rejects.toThrow();
  });
}

/**
 * Resolves when the application answers at the address. A connection alone proves less: some gateways accept connections for unused
 * addresses.
 */
function answers(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path: '/healthz', agent: false, timeout: 2000 }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`answered ${response.statusCode}`));
    });
    sent.on('timeout', () => sent.destroy(new Error('timed out')));
    sent.on('error', reject);
    sent.end();
  });
}
