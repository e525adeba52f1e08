import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createRuntimes } from '#app/runtimes.ts';
import { databaseUrl, launchProgram, ON_FREE_PORTS, query, runProgram } from '#cli/testing.ts';
import { newId } from '#kernel/ids.ts';
import { readSettings } from '#platform/settings/index.ts';

const home = mkdtempSync(path.join(tmpdir(), 'qd-audit-cli-'));
chmodSync(home, 0o755);
const keyFile = path.join(home, 'vault.key');
const database = `audit_${newId().slice(0, 8)}`;
let settings: Record<string, string>;

beforeAll(async () => {
  const server = inject('postgres');
  await query(server, `create database ${database}`);
  writeFileSync(keyFile, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 });
  settings = {
    QUARTERDECK_DATA_DIR: home,
    QUARTERDECK_VAULT_KEY_FILE: keyFile,
    ...ON_FREE_PORTS,
    DATABASE_URL: databaseUrl(server, database),
  };
});
afterAll(async () => {
  await createRuntimes(readSettings({ QUARTERDECK_DATA_DIR: home }), 'test', pino({ level: 'silent' })).endProxy();
  await query(inject('postgres'), `drop database ${database} with (force)`);
  rmSync(home, { recursive: true, force: true });
});

const here = (text: string, values: unknown[] = []) => query({ ...inject('postgres'), database }, text, values);

test(
  'the service signs and seals what is done, and `audit verify` beside it tells what was tampered with',
  { timeout: 120_000 },
  async () => {
    const service = launchProgram(['start'], settings);
    onTestFinished(async () => {
      service.kill('SIGTERM');
      expect(await service.ended, service.said.stderr).toBe(0);
    });
    const url = /API +(\S+)/.exec(await service.says(/token {8}in .*\n/))![1]!;
    const headers = { authorization: `Token ${readFileSync(path.join(home, 'admin-token'), 'utf8').trim()}` };
    const { id } = (await (await fetch(`${url}/organization`, { headers })).json()) as { id: string };
    for (const name of ['one', 'two'])
      await fetch(`${url}/organization/${id}/project`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ name }),
      });
    const waiting = async () => (await here('select count(*)::int as n from audit_unsealed'))[0]!.n;
    await expect.poll(waiting, { timeout: 30_000 }).toBe(0);

    const sound = await runProgram(['audit', 'verify'], settings);
    expect(sound.status, sound.stderr).toBe(0);
    expect(sound.stdout).toMatch(
      new RegExp(`^organization ${id}: \\d+ events compared, all as they were written\n`, 'm'),
    );
    expect(existsSync(path.join(home, 'audit-heads'))).toBe(true);

    const [event] = await here("update audit_event set triggered_by = 'nobody' where target_name = 'one' returning id");
    const tampered = await runProgram(['audit', 'verify', '--organization', id], settings);
    expect(tampered.status).toBe(1);
    expect(tampered.stdout).toContain(`event ${event!.id as string}  the event was changed`);
    expect(tampered.stderr).toContain('1 thing is not as it was written');
    const json = JSON.parse((await runProgram(['audit', 'verify', '--json'], settings)).stdout) as object;
    expect(json).toMatchObject({ organizationId: id, found: 1, findings: [{ kind: 'changed', eventId: event!.id }] });
  },
);

test('an organization that is not there is refused by its name', async () => {
  const answer = await runProgram(['audit', 'verify', '--organization', 'nobody'], settings);
  expect(answer.status).toBe(1);
  expect(answer.stderr).toContain('There is no organization nobody');
});
