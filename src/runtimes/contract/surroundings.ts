import { expect, test } from 'vitest';
import { newIdentity, nextSpec } from '#runtimes/contract/fixture.ts';
import { mountFolder, until } from '#runtimes/contract/setup.ts';
import type { ContractOf, ContractOptions } from '#runtimes/contract/setup.ts';

const query = (values: Record<string, string>): string => new URLSearchParams(values).toString();

/** Defines the tests of a workload's environment: variables, files, storage, siblings. */
export function describeSurroundings(contract: ContractOf, options: ContractOptions): void {
  test('variables reach the workload as they are, those of the image stay', async (current) => {
    const c = contract(current);
    const values = {
      PLAIN: 'one',
      EMPTY: '',
      QUOTED: `it's "so" $HOME \`id\` \\n`,
      LINES: 'first\nsecond\n',
      FOREIGN: 'grüße 你好',
    };
    const spec = c.spec({ environment: values });
    await c.apply(spec);
    for (const [name, value] of Object.entries(values))
      expect(await c.ask(spec, `/env?name=${name}`)).toEqual({ value });
    expect(await c.ask(spec, '/env?name=FROM_IMAGE')).toEqual({ value: 'yes' });
    expect(await c.ask(spec, '/env?name=NOT_THERE')).toEqual({ value: null });
  });

  test("nothing of the control plane's own environment reaches the workload", async (current) => {
    const c = contract(current);
    process.env['CONTRACT_MARK'] = 'of the control plane';
    try {
      const spec = c.spec();
      await c.apply(spec);
      expect(await c.ask(spec, '/env?name=CONTRACT_MARK')).toEqual({ value: null });
    } finally {
      delete process.env['CONTRACT_MARK'];
    }
  });

  test('files stand at their paths, cannot be written, and change with the release', async (current) => {
    const c = contract(current);
    const folder = mountFolder(options);
    const file = `${folder.mount}/settings.json`;
    const path = `${folder.named}/settings.json`;
    const content = '{"greeting": "grüße"}\nsecond line';
    const spec = c.spec({ files: [{ path: file, content }] });
    await c.apply(spec);
    expect(await c.ask(spec, `/file?${query({ path })}`)).toEqual({ content });
    expect((await c.get(spec, `/write?${query({ path, text: 'changed' })}`)).status).toBe(500);
    const next = nextSpec(spec, { files: [{ path: file, content: 'new' }] });
    await c.apply(next);
    expect(await c.ask(next, `/file?${query({ path })}`)).toEqual({ content: 'new' });
  });

  test('arguments replace the command of the image', async (current) => {
    const c = contract(current);
    const spec = c.spec({ arguments: ['node', 'server.mjs', '--contract', 'two words'] });
    await c.apply(spec);
    expect(await c.ask(spec, '/')).toMatchObject({ release: '1' });
  });

  test.skipIf(options.without?.storage)(
    'storage keeps what was written over a redeploy and a restart',
    async (current) => {
      const c = contract(current);
      const folder = mountFolder(options);
      const spec = c.spec({ storage: [{ id: 'a1b2c3', mountPath: folder.mount, sizeGib: 1 }] });
      await c.apply(spec);
      const path = `${folder.named}/note.txt`;
      await c.ask(spec, `/write?${query({ path, text: 'kept' })}`);
      const next = nextSpec(spec);
      const handle = await c.apply(next);
      expect(await c.ask(next, `/file?${query({ path })}`)).toEqual({ content: 'kept' });
      await c.restart(handle, 2);
      expect(await c.ask(next, `/file?${query({ path })}`)).toEqual({ content: 'kept' });
    },
  );

  test.skipIf(options.without?.siblings)(
    'services of one environment reach each other by internal name',
    async (current) => {
      const c = contract(current);
      const first = c.spec();
      await c.apply(first);
      const identity = { ...newIdentity(c.setup.installation), environmentId: first.identity.environmentId };
      const second = c.spec({ identity });
      await c.apply(second);
      const url = `http://${first.hostname}:8080/env?name=RELEASE`;
      expect(await c.ask(second, `/fetch?${query({ url })}`)).toEqual({ status: 200, body: '{"value":"1"}' });
    },
  );

  test.skipIf(options.without?.siblings)('a redeployed sibling is reached by its name at once', async (current) => {
    const c = contract(current);
    const first = c.spec();
    await c.apply(first);
    const identity = { ...newIdentity(c.setup.installation), environmentId: first.identity.environmentId };
    const second = c.spec({ identity });
    await c.apply(second);
    await c.apply(nextSpec(first));
    const url = `http://${first.hostname}:8080/env?name=RELEASE`;
    const reached = () => c.ask(second, `/fetch?${query({ url })}`);
    const isNew = ({ body }: Record<string, unknown>) => body === '{"value":"2"}';
    const answer = options.without?.namesAtOnce ? await until(reached, isNew) : await reached();
    expect(answer).toEqual({ status: 200, body: '{"value":"2"}' });
  });
}
