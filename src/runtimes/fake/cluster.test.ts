import { describe, expect, test } from 'vitest';
import { newContext, newIdentity, newSpec, nextSpec } from '#runtimes/contract/fixture.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { describeRuntimeContract } from '#runtimes/runtime.contract.ts';

const cluster = { seed: 1, rolloutMs: [5, 30] as [number, number] };

describeRuntimeContract(
  'fake cluster',
  async ({ router, directory }) => {
    const runtime = createFakeRuntime({ router, directory, cluster });
    return {
      runtime,
      leftovers: async (identity) => runtime.leftovers(identity),
      reopen: async () => createFakeRuntime({ router, directory, cluster }),
    };
  },
  {
    without: {
      siblings: 'instances of the fake have no network of their own',
      programs: 'it runs none',
      egress: 'nothing is kept in',
    },
  },
);

describe('a fake cluster', () => {
  const slow = { seed: 1, rolloutMs: [60_000, 60_000] as [number, number] };

  test('takes a spec over at once and rolls it out afterwards', async () => {
    const runtime = createFakeRuntime({ cluster: slow });
    const handle = await runtime.submit(newSpec(newIdentity('test'), 'fake:image'), newContext());
    expect((await runtime.observe(handle)).state).toBe('stopped');
    const abort = new AbortController();
    const waiting = runtime.progress!(handle, newContext(abort.signal));
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    expect(runtime.leftovers(handle.identity)).toEqual([]);
  });

  test('keeps the present release until the next one is ready', async () => {
    const runtime = createFakeRuntime({ cluster });
    const spec = newSpec(newIdentity('test'), 'fake:image');
    const handle = await runtime.submit(spec, newContext());
    await runtime.progress!(handle, newContext());
    const next = await runtime.submit(nextSpec(spec), newContext());
    expect(await runtime.observe(next)).toMatchObject({ state: 'running', generation: 1 });
    await runtime.progress!(next, newContext());
    expect(await runtime.observe(next)).toMatchObject({ state: 'running', generation: 2 });
  });

  test('gives the same releases the same fate for the same seed, and others for another', async () => {
    const specs = Array.from({ length: 20 }, () => newSpec(newIdentity('test'), 'fake:image'));
    const fates = async (seed: number) => {
      const runtime = createFakeRuntime({ cluster: { seed, rolloutMs: [0, 1], failures: 0.5 } });
      const fate = async (spec: (typeof specs)[number]) => {
        const handle = await runtime.submit(spec, newContext());
        return runtime.progress!(handle, newContext()).then(
          () => true,
          () => false,
        );
      };
      return Promise.all(specs.map(fate));
    };
    const first = await fates(1);
    expect(await fates(1)).toEqual(first);
    expect(new Set(first).size).toBe(2);
    expect(await fates(2)).not.toEqual(first);
  });
});
