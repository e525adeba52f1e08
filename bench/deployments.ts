import { median, quantile, type Part } from './processes.ts';
import type { Seed } from './seed.ts';

const ROUNDS = 3;
const SINGLE = 200;

/** MiB. */
interface Memory {
  rss: number;
  heap: number;
}

export interface DeploymentFigures {
  /** ms from the answered request to the beginning of the first step. */
  startMedian: number;
  startP99: number;
  perSecond: number;
  /** Milliseconds of the process's processor time for one deployment; the least of the rounds, which others disturbed least. */
  processor: number;
  /** Statements that one deployment sends, claim and end included. */
  statements: number;
  /** MiB of the service's process before and after all of them, garbage collected. */
  before: Memory;
  after: Memory;
  deployments: number;
}

/** Deployments of one service each on the fake runtime: how soon one starts, and how many a process carries out. */
export async function measureDeployments(service: Part, seed: Seed): Promise<DeploymentFigures> {
  const before = await service.ask<Memory>('memory');
  const rounds: Round[] = [];
  // The first round, in which everything is new, warms up.
  for (let round = 0; round <= ROUNDS; round++) rounds.push(await deployAll(service, seed));
  const measured = rounds.slice(1);
  await service.ask('startWorker');
  const delays: number[] = [];
  for (let n = 0; n < SINGLE; n++) delays.push(await service.ask<number>('startLatency', seed.environmentIds[n]));
  await service.ask('record');
  await service.ask('startLatency', seed.environmentIds[0]);
  const statements = (await service.ask<unknown[]>('recorded')).length;
  await service.ask('stopWorker');
  return {
    startMedian: quantile(delays, 0.5),
    startP99: quantile(delays, 0.99),
    perSecond: median(measured.map(({ rate }) => rate)),
    processor: Math.min(...measured.map(({ processor }) => processor)),
    statements,
    before,
    after: await service.ask<Memory>('memory'),
    deployments: (ROUNDS + 1) * seed.environmentIds.length + SINGLE + 1,
  };
}

/** Deployments a second of one round, and milliseconds of processor time of one. */
interface Round {
  rate: number;
  processor: number;
}

/** Queues one for each environment, lets a worker begin, and answers how many it carried out a second. */
async function deployAll(service: Part, seed: Seed): Promise<Round> {
  await service.ask('newCommit');
  for (const id of seed.environmentIds) {
    const answer = await fetch(`${seed.url}/environment/${id}/deploy`, {
      method: 'POST',
      headers: { authorization: `Token ${seed.token}` },
    });
    if (!answer.ok) throw new Error(`A deploy was answered ${answer.status}: ${await answer.text()}`);
  }
  const before = await service.ask<number>('processorTime');
  const { ms, failed } = await service.ask<{ ms: number; failed: number }>('drain');
  if (failed > 0) throw new Error(`${failed} deployments did not succeed.`);
  const used = (await service.ask<number>('processorTime')) - before;
  const count = seed.environmentIds.length;
  return { rate: (count * 1000) / ms, processor: used / 1000 / count };
}
