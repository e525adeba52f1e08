import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { drainNode, undrainNode } from '#platform/installation/drain.ts';
import { sql } from '#platform/database/index.ts';
import { requestDailyBackups } from '#services/kinds/database/backups/tasks.ts';
import { claimBackups, expireBackups } from '#services/kinds/database/backups/queries.ts';
import { BackupWorker, type BackupWorkerOptions } from '#services/kinds/database/backups/worker.ts';
import { RuntimeError, type ExecRequest, type Runtime } from '#runtimes/runtime.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

/** Result of a program beside the server: resolves with its output, or throws. */
let exec: (request: ExecRequest, signal: AbortSignal) => Promise<string> = async () => 'the dump';
const ran: ExecRequest[] = [];
/** Result of a restart: the handle's new fields. `restartedFor` collects the number of each call. */
let restart: (signal: AbortSignal) => Promise<object> = async () => ({});
const restartedFor: number[] = [];
const runtime = {
  name: 'fake',
  restart: async (handle, asked, { signal }) => {
    restartedFor.push(asked);
    return { ...handle, ...(await restart(signal)) };
  },
  exec: async (_handle, request, signal) => {
    ran.push(request);
    if (request.stdin) for await (const _ of request.stdin);
    request.stdout.write(await exec(request, signal));
    return { exitCode: 0, stderr: '' };
  },
} as Pick<Runtime, 'name' | 'exec' | 'restart'> as Runtime;

const statements: string[] = [];
const app = useApp({}, { runtimeOf: async () => runtime }, (text) => void statements.push(text));
const node = newId();
beforeAll(async () => void (await app.db.insertInto('node').values({ id: node, name: 'test' }).execute()));

function startWorker(options: Partial<BackupWorkerOptions> = {}): BackupWorker {
  const worker = new BackupWorker({
    platform: app.platform,
    nodeId: node,
    runtimes: { runtimeOf: async () => runtime },
    pollMs: 20,
    ...options,
  });
  worker.start();
  onTestFinished(() => worker.stop());
  return worker;
}

const HANDLE = { runtime: 'fake', identity: { generation: 2 ** 32 + 7 } };

/** Makes a call that never ends by itself; `begun` resolves with the first call. */
function hanging() {
  const begun = Promise.withResolvers<void>();
  const hang = (signal: AbortSignal): Promise<never> => {
    begun.resolve();
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  return { begun: begun.promise, hang };
}

/** Ends the lease of a claim, as if its worker was killed. With `by`, another worker has the claim since. */
const loseClaim = (table: 'database_backup' | 'database_restore', id: string, by: string | null = null) =>
  sql`update ${sql.table(table)} set claim_token = ${by ?? newId()},
    lease_until = now() + ${by ? '1 hour' : '-1 second'}::interval where id = ${id}`.execute(app.db);

/** Creates a database and marks it as running. */
async function runningDatabase(
  body: object = {},
  by?: Actor,
): Promise<{ admin: Actor; id: string; environment: string; project: string }> {
  const admin = by ?? (await app.organization());
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id;
  const environment = ok(await admin.post(`/project/${project}/environment`, { name: 'e' }), 201).id as string;
  const given = { name: 'store', type: 'POSTGRESQL', version: '16', mode: 'MANAGED', ...body };
  const { id } = ok(await admin.post(`/environment/${environment}/database`, given), 201);
  await setRunning(id);
  return { admin, id, environment, project };
}

const setRunning = (id: string) =>
  app.db
    .updateTable('service')
    .set({ wanted: 'running', handle: JSON.stringify(HANDLE) })
    .where('id', '=', id)
    .execute();

const request = async (admin: Actor, id: string, name = 'by hand') =>
  ok(await admin.post(`/database/${id}/backup`, { name, message: 'm' }), 201).id as string;

const stateOf = async (admin: Actor, backup: string) =>
  ok(await admin.get(`/databaseBackup/${backup}`), 200).status.state as string;

const filesOf = (admin: Actor): string[] => {
  const folder = path.join(app.platform.settings.dataDir, 'backups', admin.organizationId);
  return existsSync(folder) ? readdirSync(folder) : [];
};

test('a page of the backups of an organization takes no more rows for a role of one project, and has no others', async () => {
  const { admin, id, environment, project } = await runningDatabase();
  const other = await runningDatabase({}, admin);
  const own: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    own.unshift(await request(admin, id, name));
    await request(admin, other.id, name);
  }
  const of = `/organization/${admin.organizationId}`;
  const body = {
    name: newId(),
    cluster_permissions: [],
    project_permissions: [{ project_id: project, is_admin: true }],
  };
  const role = ok(await admin.post(`${of}/customRole`, body), 201);
  const { token } = ok(await admin.post(`${of}/apiToken`, { name: newId(), role_id: role.id }), 201);
  const list = async (query: string) =>
    ok(await app.anonymous('GET', `${of}/databaseBackup${query}`, undefined, { authorization: `Token ${token}` }), 200);
  const idsOf = ({ results }: { results: { id: string }[] }) => results.map((one) => one.id);
  expect(idsOf(await list(''))).toEqual(own);
  statements.length = 0;
  const page = await list('?page=2&page_size=2');
  expect(page).toMatchObject({ pagination: { page: 2, page_size: 2, total_count: 3, total_pages: 2 } });
  expect(idsOf(page)).toEqual(own.slice(2));
  const whole = statements.filter((text) => /^select \*.* from "database_backup"/.test(text));
  expect(whole).toEqual([expect.stringContaining(' limit ')]);
  ok(await admin.delete(`/environment/${environment}`), 204);
  expect(idsOf(await list(''))).toEqual(own);
});

describe('a backup', () => {
  test('is listed, made, downloaded as its tool wrote it, and gone with its file once it is deleted', async () => {
    const { admin, id } = await runningDatabase();
    exec = async () => 'what pg_dump writes';
    const backup = await request(admin, id);
    expect(await stateOf(admin, backup)).toBe('QUEUED');
    ok(await admin.get(`/databaseBackup/${backup}/download`), 409);
    startWorker();
    await expect.poll(() => stateOf(admin, backup)).toBe('READY');
    const { password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
    // The worker makes the backups of other tests as well.
    const commands = ran.filter(({ environment }) => environment.PGPASSWORD === password);
    expect(commands.map(({ command }) => command)).toEqual([
      ['pg_dump', '--host=127.0.0.1', '--port=5432', '--no-password', '--username=postgres', '--dbname=app', '--format=custom'], // prettier-ignore
    ]);
    const answer = await admin.get(`/databaseBackup/${backup}/download`);
    expect(ok(answer, 200)).toBe('what pg_dump writes');
    expect(answer.headers['content-disposition']).toMatch(/^attachment; filename="store-[\dT-]+\.pgdump"$/);
    expect(ok(await admin.get(`/database/${id}/backup`), 200)).toMatchObject({
      page: 1,
      results: [{ id: backup, name: 'by hand', message: 'm', size_in_bytes: 19, expires_at: null }],
    });
    expect(filesOf(admin)).toEqual([`${backup}.qdb`]);
    ok(await admin.delete(`/database/${id}/backup/${backup}`), 204);
    ok(await admin.get(`/databaseBackup/${backup}`), 404);
    await expect.poll(() => filesOf(admin)).toEqual([]);
    expect(ok(await admin.get(`/database/${id}/backup`), 200).results).toEqual([]);
  });

  test('that fails says why without the password, and leaves no file', async () => {
    const { admin, id } = await runningDatabase();
    const { password } = ok(await admin.get(`/database/${id}/masterCredentials`), 200);
    exec = () => Promise.reject(new RuntimeError('failed', `no entry for ${password}`));
    const backup = await request(admin, id);
    startWorker();
    await expect.poll(() => stateOf(admin, backup)).toBe('DEPLOYMENT_ERROR');
    expect(ok(await admin.get(`/databaseBackup/${backup}`), 200).error).toBe('no entry for ***');
    expect(filesOf(admin)).toEqual([]);
  });

  test('of a worker that ends or dies in the middle is made by the next one, and is not there before', async () => {
    const { admin, id } = await runningDatabase();
    const begun = Promise.withResolvers<void>();
    const hangs = (_: ExecRequest, signal: AbortSignal) => {
      begun.resolve();
      return new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    exec = hangs;
    const backup = await request(admin, id);
    const first = startWorker();
    await begun.promise;
    await first.stop();
    expect(filesOf(admin)).toEqual([]);
    expect(await stateOf(admin, backup)).toBe('QUEUED');
    // Another dies with its claim, which nobody renews.
    await sql`update database_backup set status = 'RUNNING', claim_token = ${newId()}, lease_until = now() - interval '1 second'
      where id = ${backup}`.execute(app.db);
    exec = async () => 'whole';
    startWorker();
    await expect.poll(() => stateOf(admin, backup)).toBe('READY');
    expect(ok(await admin.get(`/databaseBackup/${backup}/download`), 200)).toBe('whole');
  });

  test('waits for another of the same database, and for a deployment of its environment', async () => {
    const { admin, id, environment } = await runningDatabase();
    let beside = 0;
    let most = 0;
    exec = async () => {
      most = Math.max(most, ++beside);
      await new Promise((resolve) => setTimeout(resolve, 30));
      beside--;
      return 'x';
    };
    const backups = await Promise.all([1, 2, 3].map((n) => request(admin, id, `${n}`)));
    const { cluster_id } = ok(await admin.get(`/environment/${environment}`), 200);
    const deployment = newId();
    await app.db
      .insertInto('deployment')
      .values({
        id: deployment,
        organization_id: admin.organizationId,
        environment_id: environment,
        cluster_id,
        number: 1,
        action: 'DEPLOY',
        trigger: 'DEPLOY',
        whole_environment: true,
        status: 'RUNNING',
        snapshot: '{"services":[]}',
        requested_by_name: 'test',
        origin: 'API',
      })
      .execute();
    const other = await runningDatabase();
    const elsewhere = await request(other.admin, other.id);
    startWorker();
    await expect.poll(() => stateOf(other.admin, elsewhere)).toBe('READY');
    expect(await Promise.all(backups.map((backup) => stateOf(admin, backup)))).toEqual(['QUEUED', 'QUEUED', 'QUEUED']);
    most = 0;
    await app.db.deleteFrom('deployment').where('id', '=', deployment).execute();
    for (const backup of backups) await expect.poll(() => stateOf(admin, backup)).toBe('READY');
    expect(most).toBe(1);
  });

  test('is refused of what does not run, to those who may only deploy, and to other organizations', async () => {
    const { admin, id } = await runningDatabase();
    const url = `/database/${id}/backup`;
    const body = { name: 'n', message: 'm' };
    const backup = await request(admin, id);
    ok(await (await admin.withScope('DEPLOY')).post(url, body), 403);
    ok(await (await admin.withScope('DEPLOY')).get(`/databaseBackup/${backup}/download`), 403);
    ok(await (await admin.withScope('READ')).get(url), 200);
    const stranger = await app.organization();
    for (const path of [url, `/databaseBackup/${backup}`, `/databaseBackup/${backup}/download`])
      ok(await stranger.get(path), 404);
    ok(await stranger.delete(`${url}/${backup}`), 404);
    const second = await runningDatabase();
    ok(await second.admin.delete(`/database/${second.id}/backup/${backup}`), 404);
    await app.db.updateTable('service').set({ wanted: 'stopped' }).where('id', '=', id).execute();
    expect((await admin.post(url, body)).body.message).toBe('store is not running: deploy it first.');
    expect((await admin.post(url, { name: 'n' })).body.errors).toEqual([{ field: 'message', message: 'is required' }]);
  });
});

describe('a worker', () => {
  test('never has more backups and restores under way than its slots, a restore first', async () => {
    const one = await runningDatabase();
    const other = await runningDatabase();
    exec = async () => 'x';
    const backup = await request(one.admin, one.id);
    const worker = startWorker();
    await expect.poll(() => stateOf(one.admin, backup)).toBe('READY');
    await worker.stop();
    const plan = ok(await one.admin.post(`/database/${one.id}/restore`, { backup_id: backup }), 201);
    ok(await one.admin.post(`/database/${one.id}/restore/${plan.id}/run`), 200);
    const second = await request(other.admin, other.id);
    let under = 0;
    let most = 0;
    const databases: string[] = [];
    exec = async ({ environment }) => {
      most = Math.max(most, ++under);
      databases.push(environment['PGPASSWORD']!);
      await new Promise((resolve) => setTimeout(resolve, 30));
      under--;
      return '';
    };
    startWorker({ slots: 1 });
    await expect.poll(() => stateOf(other.admin, second)).toBe('READY');
    expect(ok(await one.admin.get(`/database/${one.id}/restore/${plan.id}`), 200).state).toBe('READY');
    const { password } = ok(await other.admin.get(`/database/${other.id}/masterCredentials`), 200);
    expect([most, databases.indexOf(password)]).toEqual([1, databases.length - 1]);
  });

  test('of a drained node begins no backup, and takes over those that were begun', async () => {
    const drained = newId();
    await app.db.insertInto('node').values({ id: drained, name: drained }).execute();
    const claim = async () =>
      (await claimBackups(app.db, { limit: 100, nodeId: drained, leaseSeconds: 30 })).map((one) => one.id);
    await drainNode(app.db, drained);
    const { admin, id } = await runningDatabase();
    const backup = await request(admin, id);
    expect(await claim()).not.toContain(backup);
    await undrainNode(app.db, drained);
    expect(await claim()).toContain(backup);
    await drainNode(app.db, drained);
    await loseClaim('database_backup', backup);
    expect(await claim()).toContain(backup);
    await app.db
      .updateTable('database_backup')
      .set({ status: 'QUEUED', claim_token: null, lease_until: null })
      .where('id', '=', backup)
      .execute();
    expect(await claim(), 'given back by a process that stopped').toContain(backup);
    ok(await admin.delete(`/databaseBackup/${backup}`), 204);
  });

  test('that lost its backup to another one leaves the file that the other one made', async () => {
    const { admin, id } = await runningDatabase();
    const lost = Promise.withResolvers<never>();
    const begun = Promise.withResolvers<void>();
    exec = () => {
      begun.resolve();
      return lost.promise;
    };
    const backup = await request(admin, id);
    startWorker({ leaseSeconds: 600, slots: 1 });
    await begun.promise;
    await loseClaim('database_backup', backup);
    exec = async () => 'of the second';
    const second = startWorker();
    await expect.poll(() => stateOf(admin, backup)).toBe('READY');
    await second.stop();
    lost.reject(new RuntimeError('failed', 'the first was cut off'));
    // The first has one slot: it makes another backup when it has ended with this one.
    const next = await request(admin, id, 'next');
    await expect.poll(() => stateOf(admin, next)).toBe('READY');
    expect(await stateOf(admin, backup)).toBe('READY');
    expect(ok(await admin.get(`/databaseBackup/${backup}/download`), 200)).toBe('of the second');
  });
});

describe('managed databases', () => {
  test('get one backup a day, for seven days; those that are just a server get none', async () => {
    const managed = await runningDatabase();
    const plain = await runningDatabase({ mode: 'CONTAINER' });
    const release = async (id: string, organization_id: string) => {
      const release_id = newId();
      await app.db
        .insertInto('release')
        .values({
          id: release_id,
          organization_id,
          service_id: id,
          deployment_id: newId(),
          service_version: 1,
          environment_version: 1,
          project_version: 1,
          snapshot: '{}',
        }) // prettier-ignore
        .execute();
      await app.db.updateTable('service').set({ release_id }).where('id', '=', id).execute();
    };
    for (const { id, admin } of [managed, plain]) await release(id, admin.organizationId);
    const backups = async ({ admin, id }: typeof managed) => ok(await admin.get(`/database/${id}/backup`), 200).results;
    const signal = new AbortController().signal;
    for (let round = 0; round < 3; round++) await requestDailyBackups(app.platform, signal);
    const [daily, ...more] = await backups(managed);
    expect([daily.origin, more, await backups(plain)]).toEqual(['DAILY', [], []]);
    expect(Date.parse(daily.expires_at) - Date.parse(daily.created_at)).toBeCloseTo(7 * 86_400_000, -5);
    exec = async () => 'x';
    startWorker();
    await expect.poll(() => stateOf(managed.admin, daily.id)).toBe('READY');
    await sql`update database_backup set created_at = now() - interval '25 hours' where id = ${daily.id}`.execute(
      app.db,
    );
    await requestDailyBackups(app.platform, signal);
    expect(await backups(managed)).toHaveLength(2);
    await sql`update database_backup set expires_at = now() where id = ${daily.id}`.execute(app.db);
    await expireBackups(app.db);
    expect((await backups(managed)).map((one: any) => one.id)).not.toContain(daily.id);
    await expect.poll(() => filesOf(managed.admin)).not.toContain(`${daily.id}.qdb`);
  });
});

describe('a restore', () => {
  async function made(body: object = {}) {
    const place = await runningDatabase(body);
    exec = async () => 'x';
    const backup = await request(place.admin, place.id);
    const worker = startWorker();
    await expect.poll(() => stateOf(place.admin, backup)).toBe('READY');
    return { ...place, backup, worker };
  }

  test('is planned with what it replaces, then saves that, and runs its steps in their order', async () => {
    const { admin, id, backup } = await made();
    exec = async ({ command }) => (command[0] === 'psql' && /relkind/.test(command.at(-1)!) ? 'public.a\t8 kB\n' : '');
    const url = `/database/${id}/restore`;
    const plan = ok(await admin.post(url, { backup_id: backup }), 201);
    expect(plan).toMatchObject({ state: 'PLANNED', replaces: [{ name: 'public.a', amount: '8 kB' }], error: null });
    ran.length = 0;
    ok(await admin.post(`${url}/${plan.id}/run`), 200);
    ok(await admin.post(`${url}/${plan.id}/run`), 409);
    await expect.poll(async () => ok(await admin.get(`${url}/${plan.id}`), 200).state).toBe('READY');
    expect(ran.map(({ command }) => command[0])).toEqual(['pg_dump', 'psql', 'psql', 'pg_restore', 'psql', 'psql', 'psql', 'psql']); // prettier-ignore
    const { safety_backup_id } = ok(await admin.get(`${url}/${plan.id}`), 200);
    expect(ok(await admin.get(`/databaseBackup/${safety_backup_id}`), 200)).toMatchObject({ origin: 'BEFORE_RESTORE' });
  });

  test('that fails says at what, and opens the database again', async () => {
    const { admin, id, backup } = await made();
    exec = async ({ command }) => {
      if (command.at(-1)!.includes('rename to')) throw new RuntimeError('failed', 'somebody is connected');
      return '';
    };
    const url = `/database/${id}/restore`;
    const plan = ok(await admin.post(url, { backup_id: backup }), 201);
    ok(await admin.post(`${url}/${plan.id}/run`), 200);
    await expect.poll(async () => ok(await admin.get(`${url}/${plan.id}`), 200).state).toBe('FAILED');
    expect(ok(await admin.get(`${url}/${plan.id}`), 200).error).toBe('somebody is connected');
    expect(ran.map(({ command }) => command.at(-1)).join()).toContain('with allow_connections true');
  });

  /** Requests a restore into a database whose server is restarted for it, as those of the machine are. */
  async function requested() {
    const { admin, id, backup, worker } = await made({ version: '18' });
    await worker.stop();
    const url = `/database/${id}/restore`;
    await sql`update service set spec = spec || '{"image":"host:postgresql/18"}' where id = ${id}`.execute(app.db);
    await sql`update database_backup set format = 'pg_basebackup' where id = ${backup}`.execute(app.db);
    const plan = ok(await admin.post(url, { backup_id: backup }), 201);
    ok(await admin.post(`${url}/${plan.id}/run`), 200);
    ran.length = restartedFor.length = 0;
    const state = async () => ok(await admin.get(`${url}/${plan.id}`), 200);
    const handle = async () =>
      (await app.db.selectFrom('service').select('handle').where('id', '=', id).executeTakeFirstOrThrow()).handle;
    const steps = () => ran.map(({ command }) => command[1]);
    return { id, admin, restore: plan.id as string, state, handle, steps };
  }

  test('that is taken over behind its load restarts the server under the same number and loads nothing again', async () => {
    const { restore, state, handle, steps } = await requested();
    const { begun, hang } = hanging();
    restart = hang;
    const first = startWorker({ leaseSeconds: 600 });
    await begun;
    await loseClaim('database_restore', restore);
    restart = async () => ({ restarted: true });
    startWorker();
    await expect.poll(async () => (await state()).state).toBe('READY');
    await first.stop();
    expect(steps()).toEqual(['copy', 'unpack', 'password']);
    expect([...new Set(restartedFor)]).toHaveLength(1);
    expect(restartedFor).toHaveLength(2);
    expect(restartedFor[0]).toBeGreaterThan(HANDLE.identity.generation);
    expect(await handle()).toEqual({ ...HANDLE, restarted: true });
    expect((await state()).state).toBe('READY');
  });

  test('that another worker has meanwhile changes nothing of what is recorded of the service', async () => {
    const { restore, state, handle } = await requested();
    restart = async () => {
      await loseClaim('database_restore', restore, newId());
      return { of: 'the lost attempt' };
    };
    const worker = startWorker();
    await expect.poll(() => restartedFor.length).toBe(1);
    await worker.stop();
    expect(await handle()).toEqual(HANDLE);
    expect((await state()).state).toBe('RUNNING');
  });

  test('replaces nothing where the backup of what it replaces was deleted while it was made', async () => {
    const { admin, id, restore, state, steps } = await requested();
    exec = async ({ command }) => {
      if (command[1] === 'copy') {
        const [saved] = ok(await admin.get(`/database/${id}/backup`), 200).results;
        ok(await admin.delete(`/database/${id}/backup/${saved.id}`), 204);
      }
      return 'x';
    };
    startWorker();
    await expect.poll(async () => (await state()).state).toBe('FAILED');
    expect((await state()).error).toBe(
      'The backup of what the database held was deleted while it was made, so nothing was replaced.',
    );
    expect([steps(), restore]).toEqual([['copy'], restore]);
  });

  test('is refused of another type, of a newer version, of a foreign backup, and of an old plan', async () => {
    const { admin, id, backup, environment } = await made();
    const plan = async (database: string, backup_id: string) => {
      const answer = await admin.post(`/database/${database}/restore`, { backup_id });
      return answer.status === 400 ? answer.body.errors[0].message : answer.status;
    };
    const given = { name: newId(), mode: 'CONTAINER', type: 'REDIS', version: '7' };
    const redis = ok(await admin.post(`/environment/${environment}/database`, given), 201).id;
    const older = { ...given, name: newId(), type: 'POSTGRESQL', version: '15' };
    const old = ok(await admin.post(`/environment/${environment}/database`, older), 201).id;
    for (const one of [redis, old]) await setRunning(one);
    expect(await plan(redis, backup)).toBe(
      'is one of POSTGRESQL made by pg_dump: this database (REDIS) reads what rdb makes',
    );
    expect(await plan(old, backup)).toMatch(/^is one of version 16:/);
    expect(await plan(id, newId())).toBe('names no backup of this organization');
    const foreign = await made();
    expect(await plan(id, foreign.backup)).toBe('names no backup of this organization');
    ok(await (await admin.withScope('DEPLOY')).post(`/database/${id}/restore`, { backup_id: backup }), 403);
    const { id: planned } = ok(await admin.post(`/database/${id}/restore`, { backup_id: backup }), 201);
    await sql`update database_restore set created_at = now() - interval '61 minutes' where id = ${planned}`.execute(
      app.db,
    );
    ok(await admin.post(`/database/${id}/restore/${planned}/run`), 409);
    ok(await foreign.admin.get(`/database/${id}/restore/${planned}`), 404);
  });
});
