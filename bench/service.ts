/** The measured service: the program's own parts, with a source that needs no git and the fake runtime. */
import { mkdtempSync, rmSync, writeFileSync, chmodSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createWorker } from '#app/engine.ts';
import { openBase } from '#app/install.ts';
import { firstSteps } from '#clusters/first-steps.ts';
import { createLog } from '#platform/telemetry/log.ts';
import { createMetrics } from '#app/operations.ts';
import { createImages } from '#services/images/registry-images.ts';
import { createPretendedSources } from '#services/sources/pretended-sources.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import { allRoutes } from '#app/routes.ts';
import { createSources } from '#app/git.ts';
import { inTransaction, systemContext } from '#platform/context.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { sql } from '#platform/database/index.ts';
import { createServer } from '#platform/http/server.ts';
import { readSettings } from '#platform/settings/index.ts';
import { createClusterWorker } from '#clusters/work/worker.ts';
import { insertCluster } from '#resources/cluster/index.ts';
import { makeAdministrator, makeAdministratorToken, makeOrganization } from '#resources/organization/index.ts';
import { createFakeRuntime } from '#runtimes/fake/index.ts';
import { CROWD } from './crowd.ts';
import { offer } from './processes.ts';
import type { Statement } from './bare.ts';
import type { Place } from './seed.ts';

const SLOTS = '16';
const dataDir = mkdtempSync(path.join(tmpdir(), 'bench-'));
chmodSync(dataDir, 0o755);
const settings = readSettings({
  QUARTERDECK_DATA_DIR: dataDir,
  QUARTERDECK_PORT: '0',
  QUARTERDECK_RUNTIME: 'fake',
  QUARTERDECK_RATE_LIMIT_PER_HOUR: '1000000000',
  QUARTERDECK_WORKER_SLOTS: SLOTS,
  QUARTERDECK_BUILD_SLOTS: SLOTS,
  QUARTERDECK_CHECKOUT_SLOTS: SLOTS,
  QUARTERDECK_ORGANIZATION_SLOTS: SLOTS,
});

// Statements sent to the database while a recording is on.
let recorded: Statement[] | undefined;
const query = pg.Client.prototype.query as (...args: unknown[]) => unknown;
type Sent = Partial<Statement> & { begin?: { text: string } };
pg.Client.prototype.query = function (this: pg.Client, first: Sent | undefined, ...rest: unknown[]) {
  if (recorded && first?.begin) recorded.push({ text: first.begin.text, values: [] });
  if (recorded && first?.text) recorded.push({ text: first.text, values: [...(first.values ?? [])] });
  return query.call(this, first, ...rest);
} as never;

const base = await openBase(settings, await createLog(settings));
const { organizationId, token } = (await firstSteps(base, 'fake'))!;
const { db } = base.database;
const metrics = createMetrics(db, settings);
const runtime = createFakeRuntime();
let answeredAt = 0;
let commit = 0;
let checkedOut: (() => void) | undefined;
const sources = {
  // No registry is asked: the images of the fake runtime are nowhere.
  ...createPretendedSources({ ...createSources(base.platform), ...createImages(base.platform) }),
  resolve: async () => ({
    id: String(commit).padStart(40, '0'),
    message: '',
    author: '',
    tag: '',
    date: new Date(0).toISOString(),
  }),
  checkout: async ({ directory }: { directory: string }) => {
    checkedOut?.();
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, 'Dockerfile'), 'FROM scratch\n');
  },
};
const server = createServer({
  platform: base.platform,
  sessions: null,
  limiter: new RateLimiter(db, settings.rateLimitPerHour),
  routes: allRoutes({
    repositories: createRepositoryReader(sources as never),
    images: sources,
    runtimeOf: async () => runtime,
  }),
  log: base.log,
  onAnswer: (route, ...rest) => {
    metrics.answered(route, ...rest);
    if (route.endsWith('/deploy')) answeredAt = performance.now();
  },
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
const newWorker = () => createWorker(base, { runtimeOf: async () => runtime }, sources as never);
let worker: ReturnType<typeof newWorker> | undefined;

/** Deploys the first cluster, without which nothing can be deployed on it. */
async function deployCluster(): Promise<void> {
  const clusters = createClusterWorker({ ...base, checkRuntime: () => runtime.check() });
  clusters.start();
  for (;;) {
    const { rows } = await sql<{ state: string }>`select state from cluster`.execute(db);
    if (rows.every(({ state }) => state === 'DEPLOYED')) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await clusters.stop();
}

/** Looks by the index of those under way: counting all took a twentieth of what PostgreSQL did meanwhile. */
const isWorking = async () => {
  const { rows } = await sql<{ is: boolean }>`
    select exists (select from deployment where status = 'WAITING') or exists (select from deployment where status in ('RUNNING', 'RECAP')) as is`.execute(
    db,
  );
  return rows[0]!.is;
};

async function drained(): Promise<void> {
  while (await isWorking()) await new Promise((resolve) => setTimeout(resolve, 10));
}

const toMiB = (bytes: number) => Math.round(bytes / 2 ** 20);

offer(
  {
    deployCluster,
    place: (): Place => ({ url, token: token!, organizationId, database: { ...base.directConfig } }),
    /** Creates another organization with an administrator. Its cluster needs no deployment. */
    newTenant: () =>
      inTransaction(systemContext(base.platform), async (context) => {
        const userId = await makeAdministrator(context);
        const id = await makeOrganization(context, 'Another organization', userId);
        const cluster = {
          organizationId: id,
          name: 'local',
          description: '',
          runtime: 'fake',
          nodeId: base.nodeId,
        } as const;
        await insertCluster(context, { ...cluster, deploy: true });
        return { organizationId: id, token: await makeAdministratorToken(context, id, userId, 'Bench') };
      }).then(async (tenant) => {
        await deployCluster();
        return tenant;
      }),
    /** Fills the database with the data of other organizations. */
    crowd: async () => {
      const client = new pg.Client(base.directConfig);
      await client.connect();
      for (const statement of CROWD) await client.query(statement);
      await client.end();
    },
    record: () => void (recorded = []),
    recorded: () => {
      const statements = recorded;
      recorded = undefined;
      return statements;
    },
    /** Adds a commit, so that the next deployments have something new to build. */
    newCommit: () => void commit++,
    startWorker: async () => {
      worker = newWorker();
      await worker.start();
    },
    stopWorker: async () => {
      await worker?.stop();
      worker = undefined;
    },
    drained,
    /** Starts the worker for the waiting deployments. Returns how long they took, in ms, and how many did not succeed. */
    drain: async () => {
      const before = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
      worker = newWorker();
      const started = performance.now();
      await worker.start();
      await drained();
      const ms = performance.now() - started;
      await worker.stop();
      worker = undefined;
      const { rows } = await sql<{ failed: number }>`
        select count(*) as failed from deployment
        where ended_at > ${before.rows[0]!.now} and outcome <> 'SUCCESS'`.execute(db);
      return { ms, failed: rows[0]!.failed };
    },
    /** Deploys once and returns the milliseconds from the answered request to the beginning of the first step. */
    startLatency: async (environmentId: string) => {
      commit++;
      const began = new Promise<number>((resolve) => (checkedOut = () => resolve(performance.now())));
      answeredAt = 0;
      const response = await fetch(`${url}/environment/${environmentId}/deploy`, {
        method: 'POST',
        headers: { authorization: `Token ${token}` },
      });
      if (!response.ok) throw new Error(await response.text());
      const at = await began;
      checkedOut = undefined;
      await drained();
      return Math.max(0, at - answeredAt);
    },
    memory: () => {
      globalThis.gc?.();
      return { rss: toMiB(process.memoryUsage.rss()), heap: toMiB(process.memoryUsage().heapUsed) };
    },
  },
  async () => {
    await worker?.stop();
    await server.close();
    await base.close();
    rmSync(dataDir, { recursive: true });
  },
);
