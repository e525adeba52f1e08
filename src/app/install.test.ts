import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openBase } from '#app/install.ts';
import { firstSteps, tokenFile } from '#clusters/first-steps.ts';
import { systemClock } from '#kernel/clock.ts';
import { newId } from '#kernel/ids.ts';
import { readToken } from '#platform/access/tokens.ts';
import { awaitDatabase } from '#platform/database/await-database.ts';
import { openDatabase, sql, type Database } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { SETTINGS } from '#platform/settings/schema.ts';
import { urlOf } from '#test/crash/harness/machine.ts';
import { openInstallation } from '#platform/vault/key.ts';
import { cloneDatabase } from '#test/harness/database.ts';

/** A way to the database that breaks as soon as the first commit was carried out, before its answer arrives. */
async function openBreakingWay({ host, port, ...config }: ClientConfig) {
  const way = { broken: 0, config: {} as ClientConfig };
  const relay = createServer((client) => {
    const server = host?.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port!, host);
    let commits = false;
    client.on('error', () => undefined).on('close', () => server.destroy());
    server.on('error', () => undefined).on('close', () => client.destroy());
    client.on('data', (data) => {
      commits ||= way.broken === 0 && data.includes('commit');
      server.write(data);
    });
    server.on('data', (data) => {
      if (!commits) return void client.write(data);
      way.broken++;
      client.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => void relay.close());
  way.config = { ...config, host: '127.0.0.1', port: (relay.address() as AddressInfo).port };
  return way;
}

test('a first start whose commit is never answered shows the token of what it made', async () => {
  const clone = await cloneDatabase(inject('postgres'), inject('template'));
  const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-first-'));
  const direct = openDatabase({ config: { ...clone.config, max: 2 } });
  const way = await openBreakingWay(clone.config);
  const broken = openDatabase({ config: { ...way.config, max: 2 } });
  try {
    const { vault } = await openInstallation(direct.db, [randomBytes(32)]);
    const nodeId = newId();
    await direct.db.insertInto('node').values({ id: nodeId, name: 'here' }).execute();
    const settings = readSettings({ QUARTERDECK_DATA_DIR: dataDir });
    const log = pino({ level: 'silent' });
    const platform = { db: broken.db, vault, settings, clock: systemClock, log, notify: () => undefined };
    const base = {
      platform,
      settings,
      nodeId,
      patiently: <T>(work: () => Promise<T>) => awaitDatabase(work, 30, () => undefined),
    };
    const first = await firstSteps(base, 'fake');
    expect(way.broken).toBe(1);
    expect(readFileSync(tokenFile(settings), 'utf8')).toBe(`${first?.token}\n`);
    expect((await readToken(direct.db, first!.token!, new Date()))?.principal.grants).toMatchObject([
      { organizationId: first!.organizationId },
    ]);
    expect(await direct.db.selectFrom('organization').select('id').execute()).toEqual([{ id: first!.organizationId }]);
    expect(await firstSteps(base, 'fake')).toBeUndefined();
  } finally {
    await Promise.all([direct.close(), broken.close()]);
    await clone.drop();
    rmSync(dataDir, { recursive: true });
  }
});

test('a first start with temporary data makes no administrator token, whose file would be lost', async () => {
  const clone = await cloneDatabase(inject('postgres'), inject('template'));
  const direct = openDatabase({ config: { ...clone.config, max: 2 } });
  try {
    const { vault } = await openInstallation(direct.db, [randomBytes(32)]);
    const settings = readSettings({
      DATABASE_URL: urlOf(clone.config),
      QUARTERDECK_TEMPORARY_DATA: 'true',
      QUARTERDECK_RUNTIME: 'kubernetes',
      QUARTERDECK_OWN_CLUSTER: 'first',
    });
    const log = pino({ level: 'silent' });
    const platform = { db: direct.db, vault, settings, clock: systemClock, log, notify: () => undefined };
    const patiently = <T>(work: () => Promise<T>) => work();
    expect(await firstSteps({ platform, settings, nodeId: newId(), patiently }, 'kubernetes')).toMatchObject({
      token: null,
    });
    expect(await direct.db.selectFrom('api_token').select('id').execute()).toEqual([]);
    const cluster = await direct.db.selectFrom('cluster').select(['runtime', 'node_id', 'state']).execute();
    expect(cluster).toEqual([{ runtime: 'kubernetes', node_id: null, state: 'DEPLOYMENT_QUEUED' }]);
  } finally {
    await direct.close();
    await clone.drop();
  }
});

/** Counts the connections that serve 40 statements at once. Each statement holds its connection for a while, so that they overlap. */
async function connectionsOf(db: Database): Promise<number> {
  const one = async () =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid, pg_sleep(0.3)`.execute(db)).rows[0]!.pid;
  return new Set(await Promise.all(Array.from({ length: 40 }, one))).size;
}

test('requests and the engine have as many connections as the text of the setting says', async () => {
  const text = SETTINGS.databasePoolSize.description;
  expect(text).toContain('the engine has as many of its own as QUARTERDECK_WORKER_SLOTS, and at least');
  const least = Number(/at least (\d+)/.exec(text)![1]);
  const clone = await cloneDatabase(inject('postgres'), inject('template'));
  const dataDir = mkdtempSync(path.join(tmpdir(), 'qd-connections-'));
  try {
    const keyFile = path.join(dataDir, 'vault.key');
    writeFileSync(keyFile, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    for (const slots of [1, least + 2]) {
      const settings = readSettings({
        DATABASE_URL: urlOf(clone.config),
        QUARTERDECK_DATA_DIR: dataDir,
        QUARTERDECK_VAULT_KEY_FILE: keyFile,
        QUARTERDECK_DATABASE_POOL_SIZE: '3',
        QUARTERDECK_WORKER_SLOTS: String(slots),
      });
      const base = await openBase(settings, pino({ level: 'silent' }));
      try {
        expect(await connectionsOf(base.database.db)).toBe(3);
        expect(await connectionsOf(base.engineDatabase.db)).toBe(Math.max(least, slots));
      } finally {
        await base.close();
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true });
    await clone.drop();
  }
});
