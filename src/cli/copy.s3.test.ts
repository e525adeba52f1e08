import { copyFileSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { databaseUrl, query, runProgram, startService, useInstallation } from '#cli/testing.ts';
import { newId } from '#kernel/ids.ts';
import { S3_KEYS, startStore, type TestStore } from '#test/harness/s3.ts';

const { home, keyFile, settings, here } = useInstallation('copy');
let store: TestStore;
let sending: Record<string, string>;
beforeAll(async () => {
  store = await startStore();
  sending = {
    ...settings,
    QUARTERDECK_COPIES_URL: store.url,
    QUARTERDECK_COPIES_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    QUARTERDECK_COPIES_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
  };
});
afterAll(() => store.stop());

test('settings that lack a part are refused, and a command without a store says how to name one', async () => {
  const { QUARTERDECK_COPIES_SECRET_ACCESS_KEY: _, ...half } = sending;
  expect(await runProgram(['copy', 'list'], half)).toMatchObject({
    status: 2,
    stderr: expect.stringContaining(
      'QUARTERDECK_COPIES_URL: needs QUARTERDECK_COPIES_ACCESS_KEY_ID and QUARTERDECK_COPIES_SECRET_ACCESS_KEY.',
    ),
  });
  expect(await runProgram(['copy', 'make'], settings)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('There is no store: set QUARTERDECK_COPIES_URL to a bucket'),
  });
});

test(
  'a running service sends a copy by itself, which a new machine with the key file restores',
  { timeout: 120_000 },
  async () => {
    await startService(sending);
    const checked = async () => (await here('select name, checked_at, check_error from installation_copy'))[0];
    await expect.poll(checked, { timeout: 60_000 }).toMatchObject({ checked_at: expect.any(Date), check_error: null });
    const { name } = (await checked()) as { name: string };

    const machine = path.join(home, 'new');
    mkdirSync(machine);
    copyFileSync(keyFile, path.join(machine, 'vault.key'));
    const database = `copy_${newId().slice(0, 8)}`;
    const server = inject('postgres');
    await query(server, `create database ${database}`);
    const { QUARTERDECK_VAULT_KEY_FILE: _, ...common } = sending;
    const elsewhere = { ...common, QUARTERDECK_DATA_DIR: machine, DATABASE_URL: databaseUrl(server, database) };
    const listed = await runProgram(['copy', 'list'], elsewhere);
    expect(listed).toMatchObject({ status: 0, stdout: expect.stringContaining(name) });
    const file = path.join(machine, 'latest.backup');
    const fetched = await runProgram(['copy', 'fetch', 'latest', '--output', file], elsewhere);
    expect(fetched, fetched.stderr).toMatchObject({
      status: 0,
      stdout: `${name} is in ${file}. Load it with \`quarterdeck restore ${file}\`.\n`,
    });
    const restored = await runProgram(['restore', file], elsewhere);
    expect(restored, restored.stderr).toMatchObject({ status: 0, stdout: expect.stringContaining('Restored ') });
    const organizations = await query({ ...server, database }, 'select id from organization');
    expect(organizations).toEqual(await here('select id from organization'));
    await query(server, `drop database ${database} with (force)`);
  },
);

test(
  'a copy is made, listed and checked by hand, and names that mean nothing are refused',
  { timeout: 120_000 },
  async () => {
    const made = await runProgram(['copy', 'make'], sending);
    expect(made, made.stderr).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Stored \S+\.backup\.age \(/),
    });
    const checked = await runProgram(['copy', 'check'], sending);
    expect(checked, checked.stderr).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/\.backup\.age is good: \d+ rows of \d+ tables, as of /),
    });
    expect(await runProgram(['copy', 'check', 'yesterday'], sending)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('There is no copy yesterday: `quarterdeck copy list` names them.'),
    });
    const over = await runProgram(['copy', 'fetch', '--output', keyFile], sending);
    expect(over).toMatchObject({ status: 1, stderr: expect.stringContaining('EEXIST') });
    expect(readFileSync(keyFile, 'utf8')).toBe(`${Buffer.alloc(32, 7).toString('base64')}\n`);
    expect(readdirSync(path.join(home, 'copies'))).toEqual([]);
  },
);
