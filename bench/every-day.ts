/** Measures what people do every day, with the whole program and real repositories: `node bench/every-day.ts`. */
import { createHmac, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeRepositoryRoot, type RepositoryRoot, type TestRepository } from '#test/harness/repository.ts';
import { median, quantile, startPart, type Part } from './processes.ts';
import type { Tenant, Webhook } from './program.ts';
import { makingWith } from './seed.ts';

const ROUNDS = 7;
const REPOSITORIES = 50;
const SERVICES = 500;
const SERVICES_OF_AN_ENVIRONMENT = 20;
const PUSHES = 1_000;
/** Milliseconds in which the pushes come. */
const MINUTE = 60_000;
const STREAMS = 200;
/** Lines a second that the service of the log streams writes. */
const LINES = 10;
const STREAM_SECONDS = 15;
const SECRET = 'the secret of the webhooks';

const FILES = {
  Dockerfile: 'FROM node:24\nCOPY . .\nCMD ["node", "server.mjs"]\n',
  'server.mjs': `import { createServer } from 'node:http';
createServer((_request, answer) => answer.end('fine')).listen(process.env.PORT);
setInterval(() => console.log('at', Date.now()), ${1000 / LINES});
`,
};
const PORTS = [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }];

interface PushFigures {
  /** ms until a pushed commit is deployed. */
  pushed: number;
  /** ms from the request of the same deployment to its end. */
  asked: number;
}

interface ManyFigures {
  /** Pushes a second that were sent. */
  rate: number;
  /** ms until a call is answered. */
  answered: { median: number; p99: number };
  /** Seconds from the last push until its commit is deployed. */
  behind: number;
  /** Services whose last commit is not deployed. */
  lost: number;
  /** Deployments of a commit that a service had already. */
  doubled: number;
  deployments: number;
  /** ms until the push of another organization is deployed, alone and meanwhile. */
  other: { alone: number; meanwhile: number };
}

interface StreamFigures {
  /** ms from a line's writing to its arrival, with one stream and with all. */
  one: { median: number; p99: number };
  all: { median: number; p99: number };
  lines: number;
  /** Lines that a stream did not get. */
  missing: number;
  /** KiB of the process for each stream. */
  memory: number;
}

const headersOf = ({ token }: Tenant) => ({ authorization: `Token ${token}` });

async function get<T>(tenant: Tenant, route: string): Promise<T> {
  const answer = await fetch(tenant.url + route, { headers: headersOf(tenant) });
  if (!answer.ok) throw new Error(`${route} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** Repository with a webhook, which tells of each commit. */
class Pushed {
  readonly repository: TestRepository;
  readonly #address: string;
  #head: string;

  private constructor(repository: TestRepository, address: string, head: string) {
    this.repository = repository;
    this.#address = address;
    this.#head = head;
  }

  static async make(root: RepositoryRoot, program: Part, { url, organizationId }: Tenant): Promise<Pushed> {
    const repository = root.make();
    const head = repository.commit(FILES);
    const webhook: Webhook = { organizationId, repository: repository.url, secret: SECRET };
    return new Pushed(repository, url + (await program.ask<string>('newWebhook', webhook)), head);
  }

  get head(): string {
    return this.#head;
  }

  /** Adds a commit, and tells the service of it. Answers the milliseconds until the call is answered. */
  async push(): Promise<number> {
    const before = this.#head;
    this.#head = this.repository.commit({ 'change.txt': randomUUID() });
    const change = { id: this.#head, message: 'a change', author: { name: 'Ada' }, modified: ['change.txt'] };
    const body = JSON.stringify({ ref: 'refs/heads/main', before, after: this.#head, head_commit: change, commits: [change], repository: { default_branch: 'main' } }); // prettier-ignore
    const signature = createHmac('sha256', SECRET).update(body).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': randomUUID(),
      'x-hub-signature-256': `sha256=${signature}`,
    };
    const began = performance.now();
    const answer = await fetch(this.#address, { method: 'POST', headers, body });
    if (answer.status !== 202) throw new Error(`A push was answered ${answer.status}: ${await answer.text()}`);
    return performance.now() - began;
  }
}

interface Application {
  id: string;
  git_repository: { deployed_commit_id?: string };
}

const deployedOf = async (tenant: Tenant, id: string): Promise<string | undefined> =>
  (await get<Application>(tenant, `/application/${id}`)).git_repository.deployed_commit_id;

async function untilDeployed(tenant: Tenant, id: string, commit: string): Promise<void> {
  while ((await deployedOf(tenant, id)) !== commit) await sleep(10);
}

/** Starts the program and gives it to the work, with a folder for repositories. */
async function withProgram<T>(runtime: string, work: (program: Part, root: RepositoryRoot) => Promise<T>): Promise<T> {
  const root = makeRepositoryRoot();
  Object.assign(process.env, { BENCH_REPOSITORIES: root.folder, BENCH_RUNTIME: runtime });
  const program = startPart('program.ts');
  try {
    return await work(program, root);
  } finally {
    await program.end();
    root.remove();
  }
}

async function newApplication(tenant: Tenant, environment: string, repository: TestRepository): Promise<string> {
  const git_repository = { url: repository.url, branch: 'main' };
  const body = { name: randomUUID(), auto_deploy: true, git_repository, dockerfile_path: 'Dockerfile', ports: PORTS };
  return makingWith(tenant)(`/environment/${environment}/application`, body);
}

async function newEnvironments(tenant: Tenant, count: number): Promise<string[]> {
  const project = await makingWith(tenant)(`/organization/${tenant.organizationId}/project`, { name: randomUUID() });
  const made: string[] = [];
  for (let n = 0; n < count; n++)
    made.push(await makingWith(tenant)(`/project/${project}/environment`, { name: `environment ${n}` }));
  return made;
}

async function deploy(tenant: Tenant, id: string, commit: string): Promise<void> {
  const headers = { ...headersOf(tenant), 'content-type': 'application/json' };
  const body = JSON.stringify({ git_commit_id: commit });
  const answer = await fetch(`${tenant.url}/application/${id}/deploy`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(`A deploy was answered ${answer.status}: ${await answer.text()}`);
  await untilDeployed(tenant, id, commit);
}

/** Measures a push beside the same deployment, asked for by hand: both on this machine, with a build and a new process. */
const measurePush = (): Promise<PushFigures> =>
  withProgram('host', async (program, root) => {
    const tenant = await program.ask<Tenant>('first');
    await program.ask('ready');
    const [environment] = await newEnvironments(tenant, 1);
    const pushed = await Pushed.make(root, program, tenant);
    const id = await newApplication(tenant, environment!, pushed.repository);
    await deploy(tenant, id, pushed.head);
    // The other one is not pushed to.
    const byHand = root.make();
    const other = await newApplication(tenant, (await newEnvironments(tenant, 1))[0]!, byHand);
    await deploy(tenant, other, byHand.commit(FILES));
    const figures = { pushed: [] as number[], asked: [] as number[] };
    for (let round = 0; round < ROUNDS; round++) {
      const began = performance.now();
      await pushed.push();
      await untilDeployed(tenant, id, pushed.head);
      await program.ask('settled');
      figures.pushed.push(performance.now() - began);
      const commit = byHand.commit({ 'change.txt': randomUUID() });
      const asked = performance.now();
      await deploy(tenant, other, commit);
      await program.ask('settled');
      figures.asked.push(performance.now() - asked);
    }
    return { pushed: median(figures.pushed), asked: median(figures.asked) };
  });

/** Sends pushes for a minute, on the fake runtime: everything but the builds and processes is real. */
const measureMany = (): Promise<ManyFigures> =>
  withProgram('fake', async (program, root) => {
    const tenant = await program.ask<Tenant>('first');
    const another = await program.ask<Tenant>('newTenant');
    await program.ask('ready');
    const repositories: Pushed[] = [];
    for (let n = 0; n < REPOSITORIES; n++) repositories.push(await Pushed.make(root, program, tenant));
    const environments = await newEnvironments(tenant, SERVICES / SERVICES_OF_AN_ENVIRONMENT);
    const services: { id: string; of: Pushed }[] = [];
    for (let n = 0; n < SERVICES; n++) {
      const of = repositories[n % REPOSITORIES]!;
      const environment = environments[Math.floor(n / SERVICES_OF_AN_ENVIRONMENT)]!;
      services.push({ id: await newApplication(tenant, environment, of.repository), of });
    }
    const own = await Pushed.make(root, program, another);
    const [place] = await newEnvironments(another, 1);
    const ownId = await newApplication(another, place!, own.repository);
    const pushOwn = async () => {
      const began = performance.now();
      await own.push();
      await untilDeployed(another, ownId, own.head);
      return performance.now() - began;
    };
    await pushOwn();
    const alone: number[] = [];
    for (let round = 0; round < ROUNDS; round++) alone.push(await pushOwn());

    const answered: number[] = [];
    const meanwhile: number[] = [];
    let isOver = false;
    const others = (async () => {
      while (!isOver) meanwhile.push(await pushOwn());
    })();
    const began = performance.now();
    for (let n = 0; n < PUSHES; n++) {
      await sleep(Math.max(0, (n * MINUTE) / PUSHES - (performance.now() - began)));
      answered.push(await repositories[n % REPOSITORIES]!.push());
    }
    const sent = performance.now();
    isOver = true;
    await others;
    await program.ask('settled');
    const behind = (performance.now() - sent) / 1000;
    const history = await historyOf(tenant, services);
    return {
      rate: (PUSHES * 1000) / (sent - began),
      answered: { median: median(answered), p99: quantile(answered, 0.99) },
      behind,
      ...history,
      other: { alone: median(alone), meanwhile: median(meanwhile) },
    };
  });

/** Compares what each service has deployed with what was pushed. */
async function historyOf(tenant: Tenant, services: { id: string; of: Pushed }[]) {
  const found = { lost: 0, doubled: 0, deployments: 0 };
  for (const { id, of } of services) {
    if ((await deployedOf(tenant, id)) !== of.head) found.lost++;
    const { results } = await get<{ results: { commit: { git_commit_id: string } | null }[] }>(
      tenant,
      `/application/${id}/deploymentHistory?pageSize=100`,
    );
    const commits = results.map(({ commit }) => commit?.git_commit_id);
    found.deployments += commits.length;
    found.doubled += commits.length - new Set(commits).size;
  }
  return found;
}

/** Follows a log; calls back with the milliseconds from the writing of each line to its arrival. */
async function follow(tenant: Tenant, id: string, signal: AbortSignal, onLine: (lag: number) => void): Promise<void> {
  const answer = await fetch(`${tenant.url}/application/${id}/log?follow=true&tail=1`, { headers: headersOf(tenant), signal }); // prettier-ignore
  if (!answer.ok) throw new Error(`The log answered ${answer.status}: ${await answer.text()}`);
  let rest = '';
  try {
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
      const now = Date.now();
      const lines = (rest + part).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        const at = /at (\d{13})/.exec(line)?.[1];
        if (at) onLine(now - Number(at));
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Opens so many streams of one log for some seconds. Answers the lags of the lines of each. */
async function lagsOf(tenant: Tenant, id: string, count: number): Promise<number[][]> {
  const end = new AbortController();
  const lags: number[][] = Array.from({ length: count }, () => []);
  let isCounting = false;
  const streams = lags.map((own) => follow(tenant, id, end.signal, (lag) => isCounting && own.push(lag)));
  const all = Promise.all(streams);
  await Promise.race([all, sleep(5_000)]);
  isCounting = true;
  await Promise.race([all, sleep(STREAM_SECONDS * 1000)]);
  isCounting = false;
  end.abort();
  await all;
  return lags;
}

const measureStreams = (): Promise<StreamFigures> =>
  withProgram('host', async (program, root) => {
    const tenant = await program.ask<Tenant>('first');
    await program.ask('ready');
    const [environment] = await newEnvironments(tenant, 1);
    const repository = root.make();
    const id = await newApplication(tenant, environment!, repository);
    await deploy(tenant, id, repository.commit(FILES));
    const figuresOf = (lags: number[][]) => ({ median: median(lags.flat()), p99: quantile(lags.flat(), 0.99) });
    const one = await lagsOf(tenant, id, 1);
    const before = await program.ask<number>('rss');
    const measured = lagsOf(tenant, id, STREAMS);
    await sleep(5_000 + (STREAM_SECONDS * 1000) / 2);
    const memory = (await program.ask<number>('rss')) - before;
    const all = await measured;
    const most = Math.max(...all.map(({ length }) => length));
    return {
      one: figuresOf(one),
      all: figuresOf(all),
      lines: all.flat().length,
      // Counting begins and ends between two lines.
      missing: all.map(({ length }) => Math.max(0, most - length - 1)).reduce((sum, count) => sum + count, 0),
      memory: memory / STREAMS / 1024,
    };
  });

export interface EveryDayFigures {
  push: PushFigures;
  many: ManyFigures;
  streams: StreamFigures;
}

/** Measures all of it. */
export const measureEveryDay = async (): Promise<EveryDayFigures> => ({
  push: await measurePush(),
  many: await measureMany(),
  streams: await measureStreams(),
});

/** Returns the figures as a table. */
export function everyDayTable({ push, many, streams }: EveryDayFigures): string {
  const ms = (value: number) => `${Math.round(value)} ms`;
  const rows = [
    ['What', 'Beside what', 'Figures', 'Ratio'],
    ['---', '---', '---', '---'],
    [
      'a push to a real repository until its commit is deployed',
      'the same deployment, asked for by hand',
      `${ms(push.pushed)} beside ${ms(push.asked)}`,
      (push.pushed / push.asked).toFixed(2),
    ],
    [
      `${PUSHES} pushes to ${REPOSITORIES} repositories, which ${SERVICES} services follow`,
      '–',
      `${many.rate.toFixed(1)} pushes/s; answered within ${ms(many.answered.median)}, p99 ${ms(many.answered.p99)}; ${many.deployments} deployments, the last ${Math.round(many.behind)} s after the last push; ${many.lost} lost, ${many.doubled} doubled`,
      '–',
    ],
    [
      'a push of another organization meanwhile, until it is deployed',
      'the same alone',
      `${ms(many.other.meanwhile)} beside ${ms(many.other.alone)}`,
      (many.other.meanwhile / many.other.alone).toFixed(1),
    ],
    [
      `${STREAMS} streams of a log of ${LINES} lines/s, until a line arrives`,
      'one stream of it',
      `${ms(streams.all.median)}, p99 ${ms(streams.all.p99)} beside ${ms(streams.one.median)}, p99 ${ms(streams.one.p99)}; ${streams.missing} of ${streams.lines} lines missing; ${Math.round(streams.memory)} KiB a stream`,
      (streams.all.median / streams.one.median).toFixed(1),
    ],
  ];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

if (import.meta.main) {
  const [only] = process.argv.slice(2);
  const parts = { push: measurePush, many: measureMany, streams: measureStreams };
  if (!only) console.log(everyDayTable(await measureEveryDay()));
  else console.log(await parts[only as keyof typeof parts]());
}
