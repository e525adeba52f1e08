import { expect, test } from 'vitest';
import { WORK_REPORTS } from '#app/work-reports.ts';
import { newId } from '#kernel/ids.ts';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';

const { settings, here } = useInstallation('inspect');

test('`inspect work` beside the service shows a line for each kind of work', { timeout: 120_000 }, async () => {
  await startService(settings);
  const shown = await runProgram(['inspect', 'work'], settings);
  expect(shown.status, shown.stderr).toBe(0);
  const [head, ...lines] = shown.stdout.trimEnd().split('\n');
  expect(head!.split(/ {2,}/)).toEqual(['WORK', 'WAITING', 'RUNNING', 'RETRIED', 'OLDEST WAITING', 'LAST FAILURE']);
  expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual(WORK_REPORTS.map(({ name }) => name));
  for (const line of lines) expect(line).toMatch(/^\S+ +\d+ +\d+ +\d+ +(-|\d{4}-\S+Z) +(-|\d{4}-\S+Z.*)$/);
});

test('`inspect work` without a database says so', async () => {
  const refused = await runProgram(['inspect', 'work'], {
    ...settings,
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  });
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain('The database cannot be read: ');
});

test('`inspect clusters` shows each cluster with its machine, its last answer and what was found there', async () => {
  await startService(settings);
  await expect
    .poll(async () => (await runProgram(['inspect', 'clusters'], settings)).stdout, {
      timeout: 60_000,
      interval: 1_000,
    })
    .toMatch(
      /^CLUSTER +ORGANIZATION +RUNTIME +MACHINE +ANSWERED +FOUND\n\S+ .* (host|docker|fake) +\S+ +\d{4}-\S+Z +\S/,
    );
});

test('`inspect clusters` and `node list` show that the machine of a cluster is lost and drained', async () => {
  const id = newId();
  await startService(settings);
  await here(`insert into node (id, name, seen_at, drained_at) values ($1, 'gone', now() - interval '1 hour', now())`, [
    id,
  ]);
  await here('update cluster set node_id = $1', [id]);
  expect((await runProgram(['inspect', 'clusters'], settings)).stdout).toMatch(/ gone \(lost, drained\) +/);
  expect((await runProgram(['node', 'list'], settings)).stdout).toMatch(/\ngone +\S+ +lost, drained +/);
});
