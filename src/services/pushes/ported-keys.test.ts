import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { newId } from '#kernel/ids.ts';
import { usePushes } from '#services/pushes/pushes.fixture.ts';
import { useApp } from '#test/harness/app.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf } = usePushes(app);

test('the migration gives records of a repository with a port its key, and leaves those that two repositories shared', async () => {
  const file = await readFile(new URL('../../../migrations/0381_push_heads.sql', import.meta.url), 'utf8');
  const moving = file.slice(file.indexOf('create temporary table'));
  const [admin, other] = [await app.organization(), await app.organization()];
  const environment = await environmentOf(admin);
  const make = (url: string) => applicationIn(admin, environment, { git_repository: { url, branch: 'main' } });
  await make('https://git.acme.net:3000/Acme/one.git');
  await make('https://git.acme.net:3000/acme/two.git');
  await make('https://git.acme.net:4000/acme/two.git');
  await make('https://git.acme.net:443/acme/three.git');
  await make('ssh://git@git.acme.net:2222/acme/four.git');
  await make('https://git.acme.net:3000/acme/five.git');
  await make('git@git.acme.net:acme/five.git');
  await applicationIn(other, await environmentOf(other), {
    git_repository: { url: 'https://git.acme.net:5000/acme/three.git', branch: 'main' },
  });
  const names = ['one', 'two', 'three', 'four', 'five'];
  for (const name of names) await webhookOf(admin, `git.acme.net/acme/${name}`);
  await app.db
    .insertInto('git_branch')
    .values({ id: newId(), organization_id: admin.organizationId, repository: 'git.acme.net/acme/one', branch: 'main' })
    .execute();
  const pushed = { organization_id: admin.organizationId, repository: 'git.acme.net/acme/one', delivery_id: '1' };
  await app.db
    .insertInto('git_push')
    .values({ id: newId(), ...pushed })
    .execute();
  await app.db.transaction().execute(async (db) => {
    for (const statement of moving.split(';').filter((one) => one.trim() !== '')) await sql.raw(statement).execute(db);
  });
  const keys = async (table: 'git_webhook' | 'git_branch' | 'git_push') =>
    (
      await app.db.selectFrom(table).select('repository').where('organization_id', '=', admin.organizationId).execute()
    ).map(({ repository }) => repository);
  expect((await keys('git_webhook')).toSorted()).toEqual([
    'git.acme.net/acme/five',
    'git.acme.net/acme/four',
    'git.acme.net/acme/three',
    'git.acme.net/acme/two',
    'git.acme.net:3000/acme/one',
  ]);
  expect(await keys('git_branch')).toEqual(['git.acme.net:3000/acme/one']);
  expect(await keys('git_push')).toEqual(['git.acme.net:3000/acme/one']);
});
