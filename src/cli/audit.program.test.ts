import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';

const { home, settings, here } = useInstallation('audit');

test(
  'the service signs and seals what is done, and `audit verify` beside it tells what was tampered with',
  { timeout: 120_000 },
  async () => {
    const { url } = await startService(settings);
    const headers = { authorization: `Token ${readFileSync(path.join(home, 'admin-token'), 'utf8').trim()}` };
    const { id } = (await (await fetch(`${url}/organization`, { headers })).json()) as { id: string };
    for (const name of ['one', 'two'])
      await fetch(`${url}/organization/${id}/project`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ name }),
      });
    const waiting = async () => (await here('select count(*)::int as n from audit_unsealed'))[0]!.n;
    await expect.poll(waiting).toBe(0);

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
