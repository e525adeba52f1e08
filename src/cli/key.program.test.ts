import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';
import { newId } from '#kernel/ids.ts';

const { home, keyFile, settings, here } = useInstallation('key');
const lines = () => readFileSync(keyFile, 'utf8').trim().split('\n');

test(
  'a key is rotated under a running service, which reads and writes what needs it throughout',
  { timeout: 120_000 },
  async () => {
    const { url } = await startService(settings);
    const token = readFileSync(path.join(home, 'admin-token'), 'utf8').trim();
    const post = (at: string, body: unknown, key: string) =>
      fetch(url + at, {
        method: 'POST',
        headers: { authorization: `Token ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
      });
    const json = async (answer: Promise<Response>) => (await (await answer).json()) as Record<string, unknown>;
    const organization = (await json(fetch(`${url}/organization`, { headers: { authorization: `Token ${token}` } })))
      .id;

    // Each answer is sealed with the installation's key, and opened again when it is asked for once more.
    let going = true;
    let repeated = 0;
    const repeating = (async () => {
      for (let n = 0; going; n++) {
        const ask = () => post(`/organization/${organization}/project`, { name: `project ${n}` }, `key ${n}`);
        const [first, second] = [await json(ask()), await json(ask())];
        expect(second).toEqual(first);
        expect(first).toHaveProperty('id');
        repeated++;
      }
    })();
    await expect.poll(() => repeated).toBeGreaterThan(3);
    const before = lines();
    const rotated = await runProgram(['key', 'rotate'], settings);
    expect(rotated, rotated.stderr).toMatchObject({ status: 0 });
    expect(rotated.stdout).toMatch(/Rotated: the key \w{8} is the first line of .*Keep the older lines as long as/s);
    const after = repeated;
    await expect.poll(() => repeated).toBeGreaterThan(after + 3);
    going = false;
    await repeating;
    expect(lines().slice(1)).toEqual(before);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);

    // With the older line gone the service still starts, and what was sealed before can be read.
    const all = lines();
    writeFileSync(keyFile, `${all[0]}\n`);
    expect((await runProgram(['key', 'status'], settings)).stdout).toMatch(/^\w{8} {2}\d+ values, encrypts\n$/);
    const replayed = await json(post(`/organization/${organization}/project`, { name: 'project 0' }, 'key 0'));
    expect(replayed.name).toBe('project 0');
    writeFileSync(keyFile, `${all.slice(1).join('\n')}\n`);
    expect(await runProgram(['migrate'], settings)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The key of the vault is not the one'),
    });
    writeFileSync(keyFile, `${all.join('\n')}\n`);
  },
);

test('one that was killed is gone on with instead of making another key', { timeout: 60_000 }, async () => {
  // As a kill after the new key was put in front leaves it.
  const fresh = Buffer.alloc(32, 9).toString('base64');
  writeFileSync(keyFile, `${fresh}\n${lines().join('\n')}\n`, { mode: 0o600 });
  const doctor = await runProgram(['doctor'], settings);
  expect(doctor.stdout).toMatch(
    /✓ key of the vault +.* encrypts 0 values with its first key .*, \d+ with older ones\n +.*key rotate/,
  );
  const rotated = await runProgram(['key', 'rotate'], settings);
  expect(rotated.stdout).toContain('The rotation that had begun is done');
  expect(lines()[0]).toBe(fresh);
  expect((await runProgram(['doctor'], settings)).stdout).toMatch(/✓ key of the vault +.*, 0 with older ones/);
});

test('where other machines work with the database the key is staged first', { timeout: 60_000 }, async () => {
  await here(`insert into node (id, name, seen_at) values ($1, 'the-other', now())`, [newId()]);
  const before = lines();
  const refused = await runProgram(['key', 'rotate'], settings);
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringMatching(/the-other.*key rotate --stage/s) });
  expect(lines()).toEqual(before);
  expect((await runProgram(['key', 'rotate', '--stage'], settings)).stdout).toContain(`${keyFile}.next`);
  const staged = readFileSync(`${keyFile}.next`, 'utf8').trim();
  const rotated = await runProgram(['key', 'rotate'], settings);
  expect(rotated.stdout).toContain(`Copy ${keyFile} to the-other now`);
  expect(lines()).toEqual([staged, ...before]);
});
