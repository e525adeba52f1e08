import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ClientConfig } from 'pg';
import { pino } from 'pino';
import { expect, inject, onTestFinished, test } from 'vitest';
import { firstSteps, tokenFile } from '#app/install.ts';
import { systemClock } from '#kernel/clock.ts';
import { newId } from '#kernel/ids.ts';
import { readToken } from '#platform/access/tokens.ts';
import { awaitDatabase } from '#platform/database/await-database.ts';
import { openDatabase } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
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
    expect((await readToken(direct.db, first!.token, new Date()))?.principal.grants).toMatchObject([
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
