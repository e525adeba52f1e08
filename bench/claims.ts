/** Measures how many deployments are claimed a second by 1, 20 and 60 loops, and what 1,000 idle workers cost: `node bench/claims.ts`. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { DeploymentWorker } from '#deployments/executor/worker.ts';
import { newId } from '#kernel/ids.ts';
import { embeddedPostmaster } from '#platform/database/embedded.ts';
import { openDatabase } from '#platform/database/index.ts';
import { claimInLoops, fillQueue, showWorkers } from '#test/suites/queue/load.ts';
import { makeTemplate, startTestServer } from '#test/harness/database.ts';
import { median, quantile } from './processes.ts';

const SECONDS = 6;
const server = await startTestServer({ max_connections: '1200', fsync: 'on', synchronous_commit: 'on' });
const template = await makeTemplate(server.config);

async function fresh<T>(name: string, work: (config: pg.ClientConfig) => Promise<T>): Promise<T> {
  const admin = new pg.Client(server.config);
  await admin.connect();
  await admin.query(`create database ${name} template ${template}`);
  await admin.end();
  return work({ ...server.config, database: name });
}

async function measure(loops: number) {
  return fresh(`claims_${loops}`, async (config) => {
    const { db, close } = openDatabase({ config: { ...config, max: loops } });
    await fillQueue(db, { organizations: 20, environments: 30, waiting: 6 });
    const hideWorkers = await showWorkers(config, loops);
    const end = performance.now() + SECONDS * 1000;
    const claimed = await claimInLoops(db, { loops, perOrganization: 8, until: () => performance.now() > end });
    const took = claimed.map((one) => one.took);
    await hideWorkers();
    await close();
    return { loops, perSecond: Math.round(claimed.length / SECONDS), median: median(took), p99: quantile(took, 0.99) };
  });
}

const IDLE_WORKERS = 1000;
const IDLE_SECONDS = 30;

/** Share of a core that PostgreSQL takes for workers that have nothing to do. */
async function measureIdle() {
  return fresh('idle', async (config) => {
    const { db, close } = openDatabase({ config: { ...config, max: 10 } });
    const platform = { db, log: pino({ level: 'silent' }), notify: () => undefined };
    const parts = { platform, directConfig: config, nodeId: newId(), kinds: { APPLICATION: {} } };
    const slots = { deployments: 4, builds: 1, perOrganization: 4 };
    const workers = Array.from({ length: IDLE_WORKERS }, () => new DeploymentWorker({ ...parts, slots } as never));
    for (const worker of workers) await worker.start();
    // Those that began first know of few others.
    await sleep(60_000);
    const before = processorSeconds();
    await sleep(IDLE_SECONDS * 1000);
    const share = (processorSeconds() - before) / IDLE_SECONDS;
    await Promise.all(workers.map((worker) => worker.stop()));
    await close();
    return { idleWorkers: IDLE_WORKERS, percentOfACore: Math.round(share * 1000) / 10 };
  });
}

/** Processor time of PostgreSQL so far, of all of its processes. */
function processorSeconds(): number {
  const postmaster = embeddedPostmaster(server.directory)!;
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
      } catch {
        return undefined; // It has ended meanwhile.
      }
    })
    .filter((fields) => fields?.[1] === String(postmaster));
  return stats.reduce((sum, fields) => sum + (Number(fields![11]) + Number(fields![12])) / 100, 0);
}

try {
  const rates = [];
  for (const loops of [1, 20, 60]) rates.push(await measure(loops));
  console.table(rates);
  console.log(`60 loops claim ${(rates[2]!.perSecond / rates[0]!.perSecond).toFixed(1)} times as much as one.`);
  console.log(await measureIdle());
} finally {
  await server.stop();
}
