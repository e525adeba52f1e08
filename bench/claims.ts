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

export interface ClaimFigures {
  /** Deployments claimed by 1, 20 and 60 loops; times of one claim in ms. */
  rates: { loops: number; perSecond: number; median: number; p99: number }[];
  idleWorkers: number;
  /** Processor time of PostgreSQL for the idle workers, in percent of one core. */
  percentOfACore: number;
}

/** Measures how many deployments are claimed a second by 1, 20 and 60 loops, and what 1,000 idle workers cost. */
export async function measureClaims(): Promise<ClaimFigures> {
  const server = await startTestServer({ max_connections: '1200', fsync: 'on', synchronous_commit: 'on' });
  try {
    const template = await makeTemplate(server.config);
    const rates = [];
    for (const loops of [1, 20, 60])
      rates.push(await measureLoops(await fresh(server, template, `claims_${loops}`), loops));
    return { rates, ...(await measureIdle(await fresh(server, template, 'idle'), server.directory)) };
  } finally {
    await server.stop();
  }
}

type Server = Awaited<ReturnType<typeof startTestServer>>;

async function fresh(server: Server, template: string, database: string): Promise<pg.ClientConfig> {
  const admin = new pg.Client(server.config);
  await admin.connect();
  await admin.query(`create database ${database} template ${template}`);
  await admin.end();
  return { ...server.config, database };
}

async function measureLoops(config: pg.ClientConfig, loops: number) {
  const { db, close } = openDatabase({ config: { ...config, max: loops } });
  await fillQueue(db, { organizations: 20, environments: 30, waiting: 6 });
  const hideWorkers = await showWorkers(config, loops);
  const end = performance.now() + SECONDS * 1000;
  const claimed = await claimInLoops(db, { loops, perOrganization: 8, until: () => performance.now() > end });
  const took = claimed.map((one) => one.took);
  await hideWorkers();
  await close();
  return { loops, perSecond: Math.round(claimed.length / SECONDS), median: median(took), p99: quantile(took, 0.99) };
}

const IDLE_WORKERS = 1000;
const IDLE_SECONDS = 30;

/** Share of a core that PostgreSQL takes for workers that have nothing to do. */
async function measureIdle(config: pg.ClientConfig, directory: string) {
  const { db, close } = openDatabase({ config: { ...config, max: 10 } });
  const platform = { db, log: pino({ level: 'silent' }), notify: () => undefined };
  const parts = { platform, directConfig: config, nodeId: newId(), kinds: { APPLICATION: {} } };
  const slots = { deployments: 4, builds: 1, perOrganization: 4 };
  const workers = Array.from({ length: IDLE_WORKERS }, () => new DeploymentWorker({ ...parts, slots } as never));
  for (const worker of workers) await worker.start();
  // Workers that started first know few of the others at first.
  await sleep(60_000);
  const before = processorSeconds(directory);
  await sleep(IDLE_SECONDS * 1000);
  const share = (processorSeconds(directory) - before) / IDLE_SECONDS;
  await Promise.all(workers.map((worker) => worker.stop()));
  await close();
  return { idleWorkers: IDLE_WORKERS, percentOfACore: Math.round(share * 1000) / 10 };
}

/** Processor time of PostgreSQL so far, of all of its processes, also those that have ended. */
function processorSeconds(directory: string): number {
  const postmaster = embeddedPostmaster(directory)!;
  const own = statOf(String(postmaster))!;
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .filter((stat) => stat?.parent === postmaster);
  const ticks = own.ticks + own.ofEnded + children.reduce((sum, stat) => sum + stat!.ticks, 0);
  return ticks / 100;
}

/** Reads the parent and the processor times of a process from Linux, in hundredths of a second. Undefined once it has ended. */
function statOf(pid: string): { parent: number; ticks: number; ofEnded: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ').map(Number);
    return { parent: fields[1]!, ticks: fields[11]! + fields[12]!, ofEnded: fields[13]! + fields[14]! };
  } catch {
    return undefined;
  }
}

if (import.meta.main) console.log(await measureClaims());
