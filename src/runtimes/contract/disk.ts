import { expect, test } from 'vitest';
import type { DiskItem, DiskItemKind } from '#runtimes/runtime.ts';
import { newContext } from '#runtimes/contract/fixture.ts';
import { mountFolder, readyNames, until } from '#runtimes/contract/setup.ts';
import type { Contract, ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';

const MIB = 2 ** 20;
/** Bytes by which a measurement may be too high: folders, and files that the server itself writes. */
const TOLERANCE = MIB;

/** Returns whether the runtime runs real workloads; simulated ones use no disk. */
const isReal = ({ runtime }: Contract): boolean => runtime.pretends !== true;

/** Defines the tests of disk measurement and disk limits. */
export function describeDisk(contract: ContractOf, options: ContractOptions): void {
  const itemsOf = async (serviceId: string): Promise<DiskItem[]> => {
    const { items } = await contract().runtime.diskUse!(AbortSignal.timeout(60_000));
    return items.filter((item) => item.serviceId === serviceId);
  };
  const bytesOf = (items: DiskItem[], kind: DiskItemKind) =>
    items.filter((item) => item.kind === kind).reduce((sum, { bytes }) => sum + bytes, 0);
  const near = (bytes: number, expected: number) => Math.abs(bytes - expected) <= TOLERANCE;

  test('what an instance and its volume take is told within a mebibyte, each under its name', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const folder = mountFolder(options);
    const spec = c.spec({ storage: [{ id: crypto.randomUUID(), mountPath: folder.mount, sizeGib: 1 }] });
    const handle = await c.apply(spec);
    await c.ask(spec, `/fill?path=written.bin&bytes=${6 * MIB}`);
    await c.ask(spec, `/fill?path=${encodeURIComponent(`${folder.named}/kept.bin`)}&bytes=${3 * MIB}`);
    const items = await until(
      () => itemsOf(spec.identity.serviceId),
      (seen) => near(bytesOf(seen, 'instance'), 6 * MIB) && near(bytesOf(seen, 'volume'), 3 * MIB),
    );
    expect(items.every(({ isWhole }) => isWhole)).toBe(true);
    expect(items.filter(({ kind }) => kind === 'instance').map(({ name }) => name)).toEqual(
      readyNames(await c.running(handle)),
    );
    expect(items.filter(({ kind }) => kind === 'volume').map(({ name }) => name)).toEqual([spec.storage[0]!.id]);
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(await itemsOf(spec.identity.serviceId)).toEqual([]);
  });

  test('an instance that is replaced starts from its image, keeps its volume, and tells why the one before ended', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const folder = mountFolder(options);
    const spec = c.spec({
      storage: [{ id: crypto.randomUUID(), mountPath: folder.mount, sizeGib: 1 }],
      files: [{ path: '/app/given.txt', content: 'given' }],
    });
    const handle = await c.apply(spec);
    await c.ask(spec, `/fill?path=written.bin&bytes=${6 * MIB}`);
    const kept = encodeURIComponent(`${folder.named}/kept.txt`);
    await c.ask(spec, `/write?path=${kept}&text=kept`);
    await c.ask(spec, '/say?text=goodbye');
    const before = await c.ask(spec, '/');
    const [name] = readyNames(await c.running(handle));
    const replace = () => c.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext());

    const lines = await replace();
    expect(lines!.map(({ text }) => text)).toContain('goodbye');
    const observed = await until(
      () => c.runtime.observe(handle),
      ({ state }) => state === 'running',
    );
    expect(observed.instances).toMatchObject([
      { name, state: 'ready', restarts: 1, lastExit: { reason: 'it wrote too much' } },
    ]);
    const after = await c.served(spec);
    expect(after['process']).not.toBe(before['process']);
    expect((await c.get(spec, '/file?path=written.bin')).status).toBe(500);
    expect(await c.ask(spec, `/file?path=${kept}`)).toEqual({ content: 'kept' });
    expect(await c.ask(spec, '/file?path=given.txt')).toEqual({ content: 'given' });
    expect(bytesOf(await itemsOf(spec.identity.serviceId), 'instance')).toBeLessThan(TOLERANCE);
    await replace();
    expect((await c.runtime.observe(handle)).instances[0]!.restarts).toBe(2);
  });

  test('an execution that writes without end is told with its volume, each under its name, and is ended by its name', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const folder = mountFolder(options);
    const script = `const { appendFileSync } = require('node:fs');
      const part = Buffer.alloc(${MIB}, 1);
      const write = () => ['endless', '${folder.named}/endless'].forEach((file) => appendFileSync(file, part));
      setInterval(write, 100);`;
    const storage = [{ id: crypto.randomUUID(), mountPath: folder.mount, sizeGib: 1 }];
    const spec = c.task([], { entrypoint: ['node', '-e'], arguments: [script], storage });
    const running = c.runtime.run!(spec, newContext());
    const { serviceId } = spec.identity;
    const items = await until(
      () => itemsOf(serviceId),
      (seen) => bytesOf(seen, 'task') > 3 * MIB && bytesOf(seen, 'volume') > 3 * MIB,
    );
    const namesOf = (kind: DiskItemKind) => items.filter((item) => item.kind === kind).map(({ name }) => name);
    expect([namesOf('task'), namesOf('volume')]).toEqual([[spec.name], [storage[0]!.id]]);
    await c.runtime.removeTasks!(spec.identity, namesOf('task'));
    expect(await running).toMatchObject({ reason: expect.stringMatching(/^(lost|exited)$/), exitCode: null });
    const after = await itemsOf(serviceId);
    expect([bytesOf(after, 'task'), bytesOf(after, 'volume') > 3 * MIB]).toEqual([0, true]);
  });

  test('secrets of variables and files are masked in the last lines of an instance that is replaced', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const [variable, file] = ['correct-horse', 'battery-staple'];
    const spec = c.spec({
      environment: { TOKEN: variable },
      files: [{ path: '/app/key.pem', content: `begin of the key\n${file}\n` }],
      secrets: [variable, `begin of the key\n${file}\n`],
    });
    const handle = await c.apply(spec);
    for (const text of [`the variable is ${variable}`, `the file has ${file} in it`])
      await c.ask(spec, `/say?text=${encodeURIComponent(text)}`);
    const [name] = readyNames(await c.running(handle));
    const lines = await c.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext());
    const texts = lines!.map(({ text }) => text);
    expect(texts).toContain('the variable is ***');
    expect(texts).toContain('the file has *** in it');
  });

  test('what is stopped or gone is not replaced', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const spec = c.spec();
    const handle = await c.apply(spec);
    const [name] = readyNames(await c.running(handle));
    await c.runtime.stop(handle.identity, handle, newContext());
    expect(await c.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext())).toBeNull();
    expect((await c.runtime.observe(handle)).state).toBe('stopped');
    await c.runtime.remove(spec.identity, handle, newContext());
    expect(await c.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext())).toBeNull();
  });

  test('a deployment after a replacement goes on as after any other', async (current) => {
    const c = contract(current);
    if (!isReal(c)) return;
    const spec = c.spec();
    const handle = await c.apply(spec);
    const [name] = readyNames(await c.running(handle));
    await c.runtime.replaceInstance!(spec.identity, name!, 'it wrote too much', newContext());
    const restarted = await c.restart(handle, spec.identity.generation + 1);
    const { instances } = await c.running(restarted);
    expect(instances).toMatchObject([{ state: 'ready', restarts: 0 }]);
  });
}
