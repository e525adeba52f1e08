import { expect, test } from 'vitest';
import { newContext, nextSpec } from '#runtimes/contract/fixture.ts';
import { readyNames, startTraffic, stored, until } from '#runtimes/contract/setup.ts';
import type { ContractOf } from '#runtimes/contract/setup.ts';

/** Defines the tests of `submit`: the new release and the one that it replaces. */
export function describeApplying(contract: ContractOf): void {
  test('applies a workload: it is observed running and answers at its host', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    expect(handle).toMatchObject({ runtime: c.runtime.name, identity: spec.identity });
    expect(stored(handle)).toEqual(handle);
    expect(JSON.stringify(handle).length).toBeLessThan(8192);
    const observation = await c.running(handle);
    expect(observation).toMatchObject({ state: 'running', generation: spec.identity.generation, message: '' });
    expect(observation.instances).toHaveLength(1);
    expect(observation.instances[0]).toMatchObject({ state: 'ready', restarts: 0 });
    expect(Date.parse(observation.instances[0]!.startedAt ?? '')).toBeGreaterThan(Date.now() - 120_000);
    expect(await c.ask(spec, '/')).toMatchObject({ release: '1' });
  });

  test('applied twice it changes nothing: the same process goes on', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const first = await c.apply(spec);
    const before = { answer: await c.ask(spec, '/'), observation: await c.running(first) };
    const second = await c.apply(spec);
    expect(await c.ask(spec, '/')).toEqual(before.answer);
    expect(await c.running(second)).toEqual(before.observation);
  });

  test('a higher generation replaces the lower without a failed request', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    await c.apply(spec);
    const stop = startTraffic(() => c.get(spec, '/wait?ms=20'));
    const next = nextSpec(spec);
    const handle = await c.apply(next);
    const { sent, failures } = await stop();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(4);
    expect(await c.ask(next, '/')).toMatchObject({ release: '2' });
    const observation = await c.running(handle);
    expect(observation).toMatchObject({ state: 'running', generation: 2 });
    expect(observation.instances).toHaveLength(1);
  });

  test('a lower generation is refused as superseded and nothing changes', async (current) => {
    const c = contract(current);
    const old = c.spec();
    const present = nextSpec(old);
    const handle = await c.apply(present);
    await expect(c.apply(old)).rejects.toMatchObject({ name: 'RuntimeError', code: 'superseded' });
    expect(await c.running(handle)).toMatchObject({ state: 'running', generation: 2 });
    expect(await c.ask(present, '/')).toMatchObject({ release: '2' });
  });

  test('a candidate that ends at its start is removed, its log is told, and the previous release serves on', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const before = await c.ask(spec, '/');
    const bad = nextSpec(spec, { environment: { FAIL_START: 'on-purpose' }, readyTimeoutSeconds: 12 });
    await expect(c.apply(bad)).rejects.toMatchObject({
      name: 'RuntimeError',
      code: 'not_ready',
      message: expect.stringContaining('cannot start: FAIL_START is on-purpose'),
    });
    expect(await c.ask(spec, '/')).toEqual(before);
    const observation = await c.running(handle);
    expect(observation).toMatchObject({ state: 'running', generation: 1 });
    expect(observation.instances).toHaveLength(1);
  });

  test('a candidate that never gets ready fails within its time and the previous release serves on', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const before = await c.ask(spec, '/');
    const bad = nextSpec(spec, { environment: { UNREADY: 'yes' }, readyTimeoutSeconds: 3 });
    const started = Date.now();
    await expect(c.apply(bad)).rejects.toMatchObject({ name: 'RuntimeError', code: 'not_ready' });
    expect(Date.now() - started).toBeLessThan(40_000);
    expect(await c.ask(spec, '/')).toEqual(before);
    expect(await c.running(handle)).toMatchObject({ state: 'running', generation: 1 });
  });

  test('after a failed candidate a good one of a higher generation is applied', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const bad = nextSpec(spec, { environment: { FAIL_START: 'yes' }, readyTimeoutSeconds: 6 });
    await expect(c.apply(bad)).rejects.toMatchObject({ code: 'not_ready' });
    const good = nextSpec(nextSpec(spec));
    const handle = await c.apply(good);
    expect(await c.running(handle)).toMatchObject({ state: 'running', generation: 3 });
    expect(await c.ask(good, '/')).toMatchObject({ release: '3' });
  });

  test('aborted it throws, leaves the previous release serving, and goes on when called again', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const handle = await c.apply(spec);
    const next = nextSpec(spec, { environment: { UNREADY: 'yes' } });
    const abort = new AbortController();
    const applying = c.apply(next, newContext(abort.signal));
    setTimeout(() => abort.abort(new Error('cancelled')), 500);
    await expect(applying).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    expect(await c.ask(spec, '/')).toMatchObject({ release: '1' });
    expect(await c.running(handle)).toMatchObject({ state: 'running', generation: 1 });
    const again = { ...next, environment: { RELEASE: '2' } };
    expect(await c.running(await c.apply(again))).toMatchObject({ state: 'running', generation: 2 });
    expect(await c.ask(again, '/')).toMatchObject({ release: '2' });
  });

  test('a signal that is aborted already starts nothing', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    const context = newContext(AbortSignal.abort(new Error('cancelled')));
    await expect(c.apply(spec, context)).rejects.toMatchObject({ name: 'RuntimeError', code: 'aborted' });
    expect((await c.get(spec, '/')).status).toBe(404);
  });

  test('the required number of instances runs, and all of them serve', async (current) => {
    const c = contract(current);
    const spec = c.spec({ instances: { min: 2, max: 2 } });
    const handle = await c.apply(spec);
    const observation = await c.running(handle);
    expect(observation.state).toBe('running');
    expect(new Set(readyNames(observation)).size).toBe(2);
    const ask = () => Promise.all(Array.from({ length: 8 }, () => c.ask(spec, '/')));
    await until(ask, (answers) => new Set(answers.map((answer) => answer['process'])).size === 2);
    const fewer = await c.apply(nextSpec(spec, { instances: { min: 1, max: 1 } }));
    expect(readyNames(await c.running(fewer))).toHaveLength(1);
  });

  test('with zero instances nothing runs and the service can be scaled up again', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    await c.apply(spec);
    const none = nextSpec(spec, { instances: { min: 0, max: 1 } });
    const handle = await c.apply(none);
    expect(readyNames(await c.runtime.observe(handle))).toEqual([]);
    const again = await c.apply(nextSpec(none, { instances: { min: 1, max: 1 } }));
    expect(await c.running(again)).toMatchObject({ state: 'running', generation: 3 });
  });
}
