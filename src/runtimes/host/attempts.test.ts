import { afterEach, beforeEach, expect, test } from 'vitest';
import { newContext, newIdentity } from '#runtimes/contract/fixture.ts';
import { AttemptFence } from '#runtimes/host/attempts.ts';
import { TestHost } from '#runtimes/host/testing.ts';
import { Layout } from '#runtimes/host/layout.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'host-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const { serviceId } = newIdentity('i');
const fence = (asked: number, number: number, holds = () => true) =>
  new AttemptFence(new Layout(directory), serviceId, asked, { ...newContext(), attempt: { number, holds } });

test('an attempt goes on until a later one has begun, for the same deployment or for a later one', () => {
  const first = fence(5, 1);
  first.begin();
  expect(first.isReplaced()).toBe(false);
  fence(5, 2).begin();
  expect(first.isReplaced()).toBe(true);
  expect(() => first.require()).toThrow('Attempt 2 of generation 5 has begun: attempt 1 of 5 came too late.');
  fence(6, 1).begin();
  expect(() => fence(5, 3).begin()).toThrow('Attempt 1 of generation 6 has begun: attempt 3 of 5 came too late.');
});

test('an attempt whose caller gave up waiting is replaced, whether another one has begun or not', () => {
  let holds = true;
  const one = fence(5, 1, () => holds);
  one.begin();
  holds = false;
  expect(one.isReplaced()).toBe(true);
  expect(() => one.require()).toThrow('Another attempt goes on');
});

test('what no other attempt can follow is not held back by attempts', () => {
  fence(5, 2).begin();
  const plain = new AttemptFence(new Layout(directory), serviceId, 5, newContext());
  plain.begin();
  expect(plain.isReplaced()).toBe(false);
});

test.each(['stop', 'remove'] as const)(
  'a %s whose claim is lost while it waits ends and removes nothing',
  async (verb) => {
    const host = await TestHost.open({ mode: 'plain' });
    host.write({ Dockerfile: 'FROM x\nWORKDIR /app\nCMD ["sleep", "1000"]' });
    const { image } = await host.build();
    const spec = host.spec(image, { ports: [], routes: [] });
    const handle = await host.apply(spec);
    let holds = true;
    const context = { ...newContext(), attempt: { number: 1, holds: () => holds } };
    const { router } = host;
    const { set, remove } = router;
    router.set = async (...given) => set.apply(router, given).finally(() => (holds = false));
    router.remove = async (...given) => remove.apply(router, given).finally(() => (holds = false));
    const asked =
      verb === 'stop'
        ? host.runtime.stop(handle.identity, handle, context)
        : host.runtime.remove(spec.identity, handle, context);
    await expect(asked).rejects.toMatchObject({ code: 'aborted' });
    await expect
      .poll(() => host.runtime.observe(handle))
      .toMatchObject({ state: 'running', instances: [{ state: 'ready' }] });
    await host.close();
  },
);
