import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorker } from '#app/engine.ts';
import { Collector } from '#housekeeping/collector.ts';
import { RETENTION_TASKS } from '#housekeeping/index.ts';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { newIdentity } from '#runtimes/contract/fixture.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { removeUnusedSecretVersions } from '#services/capabilities/variables/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample } from '#test/harness/engine.ts';

/** Number of deployments: a thousand take a minute, so that a local run makes a fifth of them. */
const DEPLOYMENTS = process.env.CI || process.env.SOAK ? 1000 : 200;
/** Number of deployments after which the heap has reached its size. */
const SETTLED = DEPLOYMENTS * 0.4;
/** Number of kept releases and deployments: the least that the settings allow. */
const KEPT = 10;
/** Deployments of one commit: most deployments of a service change its configuration only. */
const PER_COMMIT = 25;
/** Growth of the heap in bytes that counts as noise, such as compiled code and caches. */
const NOISE_BYTES = 12 << 20;

/** Tables with rows of every deployment, each with a retention of its own: the audit trail and outgoing events. */
const TOLD = ['audit_event', 'audit_target', 'audit_unsealed', 'audit_chain', 'audit_seal', 'outbox', 'stream_event'];

const app = useApp({ QUARTERDECK_KEPT_RELEASES: String(KEPT), QUARTERDECK_KEPT_DEPLOYMENTS: String(KEPT) });
const runtime = createFakeRuntime();

/** Commits by branch, in place of Git, which would take most of the time of a thousand deployments. */
const heads = new Map<string, number>();
const sources = {
  resolve: async ({ branch }: { branch: string }) => ({
    id: String(heads.get(branch) ?? 0).padStart(40, '0'),
    date: new Date(0).toISOString(),
    author: 'Ada Lovelace',
    message: 'change',
    tag: '',
  }),
  checkout: async ({ directory }: { directory: string }) => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, 'Dockerfile'), 'FROM scratch\nCMD ["serve"]\n');
  },
};

let stop: () => Promise<void>;
beforeAll(async () => {
  const worker = createWorker(
    {
      settings: app.platform.settings,
      platform: app.platform,
      engineDatabase: app.database,
      directConfig: app.databaseConfig,
      nodeId: newId(),
      installation: { id: app.installationId, epoch: 1 },
    },
    { runtimeOf: async () => runtime },
    sources as never,
  );
  await worker.start();
  stop = () => worker.stop();
});
afterAll(() => stop());

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const heap = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

/** Creates an application with a secret, in an organization of its own. */
async function makeService(admin: Actor) {
  const branch = newId();
  const source = { git_repository: { url: 'https://example.com/team/hello.git', branch } };
  const { application } = await makeExample(admin, source);
  const secret = ok(await admin.post(`/application/${application.id}/secret`, { key: 'S', value: 'first' }), 201);
  const deploy = async (n: number) => {
    heads.set(branch, Math.floor(n / PER_COMMIT));
    ok(await admin.put(`/application/${application.id}/secret/${secret.id}`, { key: 'S', value: `value ${n}` }), 200);
    ok(await admin.post(`/application/${application.id}/deploy`), 200);
    await ended(admin);
  };
  return { application, deploy };
}

async function ended(admin: Actor): Promise<void> {
  for (;;) {
    const row = await app.db
      .selectFrom('deployment')
      .select('id')
      .where('organization_id', '=', admin.organizationId)
      .where('status', '<>', 'ENDED')
      .executeTakeFirst();
    if (!row) return;
    await sleep(2);
  }
}

/** Runs all recurring tasks as if two days had passed: some wait until no worker can still use what they remove. */
async function keepHouse(): Promise<void> {
  await sql`update deployment set ended_at = ended_at - interval '2 days' where status = 'ENDED'`.execute(app.db);
  const later = { ...app.context, clock: { now: () => new Date(Date.now() + 2 * 3_600_000) } };
  for (const task of RETENTION_TASKS) await task.run(app.platform, new AbortController().signal);
  await removeUnusedSecretVersions(app.context);
  await removeUnusedSecretVersions(later);
  const collector = new Collector({
    platform: app.platform,
    runtimes: { runtimeOf: async () => runtime },
    nodeId: newId(),
    installation: { id: app.installationId, epoch: 1 },
    graceSeconds: 0,
  });
  await collector.collect();
}

/** Returns the number of rows of an organization by table. */
async function rowsOf({ organizationId }: Actor): Promise<Record<string, number>> {
  const { rows: tables } = await sql<{ name: string }>`select c.relname::text as name from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'organization_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`.execute(
    app.db,
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables.filter((table) => !TOLD.includes(table.name))) {
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from ${sql.id(name)}
      where organization_id = ${organizationId}`.execute(app.db);
    counts[name] = rows[0]!.count;
  }
  return counts;
}

/** Returns the paths of all files and folders below a folder, sorted. */
const filesOf = (folder: string): string[] => readdirSync(folder, { recursive: true }).map(String).toSorted();

const imagesOf = (serviceId: string): number =>
  runtime.leftovers({ ...newIdentity(app.installationId), serviceId }).filter((name) => name.startsWith('image '))
    .length;

test(`${DEPLOYMENTS} deployments of a service leave what as many as are kept leave, and the memory stays flat`, async () => {
  const [few, many] = [await app.organization(), await app.organization()];
  const one = await makeService(few);
  const other = await makeService(many);
  for (let n = 1; n <= KEPT; n++) await one.deploy(n);
  await keepHouse();
  const files = filesOf(app.platform.settings.dataDir);

  let settled = 0;
  for (let n = 1; n <= DEPLOYMENTS; n++) {
    await other.deploy(n);
    if (n % 200 === 0) await keepHouse();
    if (n === SETTLED) settled = heap();
  }
  await keepHouse();
  const growth = heap() - settled;

  expect(await rowsOf(many)).toEqual(await rowsOf(few));
  const releases = await app.db
    .selectFrom('release')
    .select('image')
    .where('service_id', '=', other.application.id)
    .execute();
  expect(releases).toHaveLength(KEPT);
  expect(imagesOf(other.application.id)).toBe(new Set(releases.map((row) => row.image)).size);
  expect(filesOf(app.platform.settings.dataDir)).toEqual(files);
  expect(readdirSync(path.join(app.platform.settings.dataDir, 'checkouts'))).toEqual([]);
  expect(
    growth,
    `the heap grew by ${(growth / 2 ** 20).toFixed(1)} MB over ${DEPLOYMENTS - SETTLED} deployments`,
  ).toBeLessThan(NOISE_BYTES);
}, 300_000);
