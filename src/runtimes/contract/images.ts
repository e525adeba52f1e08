import { expect, test } from 'vitest';
import { newBuild, newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import type { ContractOf } from '#runtimes/contract/setup.ts';

/** Defines the tests of built images and their removal. */
export function describeImages(contract: ContractOf): void {
  test('only images that are named are removed, of the service that is named, and a second time is done', async () => {
    const { runtime, folder, setup } = contract();
    const [service, other] = [newIdentity(setup.installation), newIdentity(setup.installation)];
    const build = async (identity: typeof service, cacheKey: string) =>
      (await runtime.build!(newBuild(identity, folder, { cacheKey }), newContext())).image;
    const images = [await build(service, 'one'), await build(service, 'two'), await build(other, 'one')];
    const there = () => Promise.all(images.map((image) => runtime.hasImage!(service, image)));
    try {
      expect(await there()).toEqual([true, true, true]);
      for (const _time of [1, 2]) await runtime.removeImages!(service, [images[0]!]);
      expect(await there()).toEqual([false, true, true]);
      await runtime.removeImages!(other, [images[1]!]);
      expect(await there()).toEqual([false, true, true]);
      await runtime.removeImages!(service, 'all');
      expect(await there()).toEqual([false, false, true]);
    } finally {
      for (const identity of [service, other]) await runtime.remove(identity, null, newContext());
    }
  });

  test('an environment that has nothing any more is removed, also a second time, and what is on disk is counted', async (current) => {
    const c = contract(current);
    const spec = c.spec();
    await c.apply(spec);
    await c.runtime.remove(spec.identity, null, newContext());
    for (const _time of [1, 2]) await c.runtime.removeEnvironment?.(spec.identity);
    await c.runtime.removeBroken?.();
    const use = await c.runtime.diskUse?.(AbortSignal.timeout(60_000));
    const { items = [], storage = '/', ...totals } = use ?? {};
    expect(storage).toMatch(/^\//);
    for (const bytes of Object.values(totals)) expect(bytes).toBeGreaterThanOrEqual(0);
    expect(items.filter(({ serviceId }) => serviceId === spec.identity.serviceId)).toEqual([]);
    expect(await c.subject.leftovers(spec.identity)).toEqual([]);
  });
}
