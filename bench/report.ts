import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import path from 'node:path';
import { format } from 'prettier';
import type { ClaimFigures } from './claims.ts';
import type { Crowded } from './crowd.ts';
import type { DeploymentFigures } from './deployments.ts';
import type { DockerFigures } from './docker.ts';
import { everyDayTable, type EveryDayFigures } from './every-day.ts';
import type { Footprint } from './footprint.ts';
import type { OneAgainstAll } from './one-against-all.ts';
import { proxyTable, type ProxyFigures } from './proxy.ts';
import type { Pair } from './requests.ts';
import type { EnvironmentCost, ServiceFigures } from './services.ts';

export interface Figures {
  get: Pair;
  /** Reads from a large database; the first is the GET of one environment. */
  crowd: Crowded[];
  post: Pair;
  oneAgainstAll: OneAgainstAll;
  statuses: Pair;
  services: ServiceFigures;
  deployments: DeploymentFigures;
  claims: ClaimFigures;
  proxy: ProxyFigures;
  /** Undefined if no Docker engine is available. */
  docker: DockerFigures | undefined;
  everyDay: EveryDayFigures;
  footprint: Footprint;
  /** Load average before the run. Above 0 other programs use the machine. */
  loadBefore: number;
}

type Rate = ClaimFigures['rates'][number];

/** Writes bench/RESULTS.md. */
export async function writeReport(figures: Figures): Promise<void> {
  const text = await format(report(figures), { parser: 'markdown' });
  writeFileSync(path.join(import.meta.dirname, 'RESULTS.md'), text);
}

const per = (rate: number) => `${Math.round(rate)}/s`;
const ms = (value: number) => `${value < 100 ? value.toFixed(1) : Math.round(value)} ms`;
const verdict = (reached: boolean) => (reached ? 'reached' : 'missed');

function pairRow(what: string, beside: string, pair: Pair, goal: number): string[] {
  const figures = `${per(pair.ours)} beside ${per(pair.bare)}`;
  return [what, beside, figures, pair.ratio.toFixed(2), `${goal}: ${verdict(pair.ratio >= goal)}`];
}

/** Returns a row with the cost of a service in an environment of this size. The cost should not grow with the size. */
function costRow({ services, statuses, plan, deploy }: EnvironmentCost): string[] {
  const each = (value: number) => `${((value * 1000) / services).toFixed(0)} µs`;
  return [
    `an environment of ${services} services: statuses, plan, deployment`,
    '–',
    `${ms(statuses)}, ${ms(plan)}, ${ms(deploy)}: ${each(statuses)}, ${each(plan)}, ${each(deploy)} a service`,
    '–',
    'flat',
  ];
}

function dockerRow(what: string, beside: string, figures: DockerFigures['first'] | undefined, goal: number): string[] {
  if (!figures) return [what, beside, 'not measured here', '–', `${goal} ×`];
  const ratio = figures.ours / figures.byHand;
  return [
    what,
    beside,
    `${ms(figures.ours)} beside ${ms(figures.byHand)}`,
    ratio.toFixed(2),
    `${goal} ×: ${verdict(ratio <= goal)}`,
  ];
}

function report({
  get,
  crowd,
  post,
  oneAgainstAll,
  statuses,
  services,
  deployments,
  claims,
  proxy,
  docker,
  everyDay,
  footprint,
  loadBefore,
}: Figures): string {
  const { startMedian, startP99, perSecond, before, after } = deployments;
  const [one, , many] = claims.rates as [Rate, Rate, Rate];
  const rows = [
    ['What', 'Beside what', 'Figures', 'Ratio', 'Goal'],
    ['---', '---', '---', '---', '---'],
    pairRow('GET of one environment', '`node:http` and the prepared select of the same row', get, 0.6),
    [
      'the same GET with 100 organizations, 10,000 environments, 1,000,000 audit events',
      'the same with an empty database',
      `${per(crowd[0]!.crowded)} beside ${per(crowd[0]!.empty)}`,
      crowd[0]!.ratio.toFixed(2),
      `0.9: ${verdict(crowd[0]!.ratio >= 0.9)}`,
    ],
    pairRow('POST of a project, with its audit event', '`node:http` and the same statements', post, 0.6),
    pairRow('statuses of 100 environments', '`node:http` and the statement that finds them', statuses, 0.4),
    pairRow(
      'statuses of an environment of 100 services',
      '`node:http` and the statement that finds them',
      services.statuses,
      0.4,
    ),
    [
      'GET of one tenant while another is at its limits',
      'the same alone',
      `median ${ms(oneAgainstAll.attacked)} beside ${ms(oneAgainstAll.alone)}`,
      oneAgainstAll.ratio.toFixed(2),
      `3 ×: ${verdict(oneAgainstAll.ratio <= 3)}`,
    ],
    ...services.costs.map(costRow),
    [
      'deploy answered → first step begins',
      '–',
      `median ${ms(startMedian)}, p99 ${ms(startP99)}`,
      '–',
      `10 ms: ${verdict(startMedian <= 10)}, 50 ms: ${verdict(startP99 <= 50)}`,
    ],
    ['deployments of one service, one process', '–', per(perSecond), '–', `200/s: ${verdict(perSecond >= 200)}`],
    [
      'claims of deployments by 60 loops (docs/decisions/0034)',
      'by one loop',
      `${claims.rates.map((rate) => per(rate.perSecond)).join(', ')} by ${claims.rates.map((rate) => rate.loops).join(', ')} loops; p99 of 60 ${ms(many.p99)}`,
      (many.perSecond / one.perSecond).toFixed(1),
      `1: ${verdict(many.perSecond > one.perSecond)}`,
    ],
    [
      `PostgreSQL while ${claims.idleWorkers} workers have nothing to do`,
      '–',
      `${claims.percentOfACore} % of a core`,
      '–',
      `5 %: ${verdict(claims.percentOfACore < 5)}`,
    ],
    [
      'requests through the built-in proxy',
      'the same sent to the upstream itself',
      `${per(proxy.builtin.rate)} beside ${per(proxy.direct.rate)}`,
      proxy.builtin.ratio.toFixed(2),
      `0.5: ${verdict(proxy.builtin.ratio >= 0.5)}`,
    ],
    [
      'one request through the built-in proxy',
      'the same sent to the upstream itself',
      `median ${proxy.builtin.single.toFixed(2)} ms beside ${proxy.direct.single.toFixed(2)} ms`,
      '–',
      `+1 ms: ${verdict(proxy.builtin.single - proxy.direct.single <= 1)}`,
    ],
    [
      'requests through Caddy as Quarterdeck runs it',
      'Caddy by hand',
      'see Proxies',
      proxy.caddyRatio?.toFixed(2) ?? 'not measured here',
      proxy.caddyRatio === undefined ? '0.95' : `0.95: ${verdict(proxy.caddyRatio >= 0.95)}`,
    ],
    dockerRow(
      'unchanged image on docker: POST deploy → DEPLOYED',
      '`docker run` of it until it answers',
      docker?.unchanged,
      1.5,
    ),
    dockerRow('first build on docker', '`git clone`, `docker build`, `docker run` by hand', docker?.first, 1.15),
    [
      'idle memory, service and embedded PostgreSQL',
      '–',
      footprint.idle === undefined ? 'not measured here' : `${Math.round(footprint.idle)} MiB (PSS)`,
      '–',
      footprint.idle === undefined ? '180 MB' : `180 MB: ${verdict(footprint.idle * 1.048_576 <= 180)}`,
    ],
    [
      'start until ready',
      '–',
      `first ${ms(footprint.firstStart)}, warm ${ms(footprint.warmStart)}`,
      '–',
      `4 s: ${verdict(footprint.firstStart <= 4_000)}, 1 s: ${verdict(footprint.warmStart <= 1_000)}`,
    ],
  ];
  const table = rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const [processor] = cpus();
  return `# What was measured

Written by \`npm run bench\` (${new Date().toISOString().slice(0, 10)}), which repeats all of it in some minutes.

${table}

## Proxies

${proxyTable(proxy)}

The same empty \`node:http\` server answers all of them with 1 KB, over 32 connections from one process; medians of five rounds, in each of which all take their turn, and the median of the rounds' ratios. Processor time is that of the proxy's processes for one request. Memory is PSS: before the first request, and with ${proxy.resting} connections that rest after one request each. nginx and Caddy by hand have the fewest lines that do the same (\`bench/proxy-contestants.ts\`). \`node bench/proxy.ts\` repeats this part alone; it takes the packages caddy and nginx, and leaves out what is not installed.

## Every day

${everyDayTable(everyDay)}

The whole program with its default slots, real repositories on the same machine, calls of webhooks with signatures (\`bench/every-day.ts\`; \`node bench/every-day.ts\` repeats this part alone, \`push\`, \`many\` or \`streams\` one of it). Pushes and log streams have the host runtime; the many pushes have the fake one, whose builds and instances cost nothing: everything else, checkouts included, is real. Making the commits takes processor time of the same machine.

## How

- ${availableParallelism()} processors (${processor?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}, Node ${process.versions.node}; load average before the run ${loadBefore.toFixed(1)}, at its end ${loadavg()[0]!.toFixed(1)}. Load, service and database share these processors, and ${loadBefore > 1 ? 'others worked on the machine during the run' : 'others may have worked on the machine'}: read the ratios, not the figures.
- Service, bare server and load are processes of their own; 16 keep-alive connections, each with one request at a time. Rounds alternate between the two of a pair; shown are medians of five rounds, and the median of the five ratios.
- The service is the program with its log, metrics, token check and rate limit (set so high that it refuses nobody). Both sides use the same embedded PostgreSQL with its default, durable settings, over 16 connections and with named statements. The bare server sends what one request of the service was seen to send, with new ids.
- Deployments go through all steps (checkout, build, deploy) on the fake runtime, from a source that answers at once; 16 slots. They are queued first, then a worker begins: ${deployments.deployments} of them in all, median of three rounds of 300 after one that warms up. Memory of that process: ${before.rss} MiB resident, ${before.heap} MiB of heap before; ${after.rss} MiB and ${after.heap} MiB after.

## What costs what

- One request sends this many statements to the database, \`begin\` and \`commit\` included: GET ${get.statements}, POST ${post.statements}, statuses ${statuses.statements}. The bare server sends 1, ${post.statements} and 1. What is besides is the look-up of the token; it is not sent where the statement that loads the addressed thing tells whether a remembered caller still holds, so that a revocation holds at once in either case.
- One deployment with its request sends ${deployments.statements}, polls for its end included: each step of it is one fenced statement (docs/decisions/0012). What a deployment costs besides is the checkout, in the files.
- On a Docker Engine five rounds, each a commit that changes all layers but the base, then the same image again; medians. Ours ends when the former container is gone, by hand when the first request is answered.
- The proxy, in processor time for each request, which others on the machine disturb least (of the proxy alone; the benchmark's load and upstream take about 50 µs beside it, so that 50 µs on two processors are a ratio of 0.5): 49 to 55 µs with Node's HTTP server and undici's dispatcher, 29 to 31 µs with a parser of our own, which was given up (\`docs/decisions/0021-the-built-in-proxy-parses-nothing.md\`). A profile of it shows two thirds in the kernel's writes, a tenth in collecting garbage, and no function of ours above 1.5 %. Also tried: reading from upstreams into one buffer that is used again (2 to 3 µs less, but whoever keeps bytes has to copy them then: not taken), and V8's options for a smaller heap (0.2 MiB of an idle process: not taken). More processes for the proxy would only help with more than these two processors, which load and upstream fill as well. With three processes at work in turn, the proxied side loses more than its share to whatever else runs on the machine.
- The proxy's process took 54 MiB (PSS) when it had started and 88 MiB after some load, its shim 35 MiB: now 16, 25 and 15 MiB. 27 MiB of each were Node's stripper of types, which stays for as long as a process lives: a process that ends compiles for them. 8 MiB were Node's own WebSocket client, which comes with importing \`node:http\` as an ES module (\`src/kernel/node-http.ts\`), and the rest undici and HTTP/2, which now comes with the first call of gRPC.
- Processor time of the process for one deployment, the least of its rounds: ${deployments.processor.toFixed(1)} ms.
- Processor time of the process for one request, the least of five rounds, in microseconds: GET ${Math.round(get.processor.ours)} beside ${Math.round(get.processor.bare)} of the bare server, POST ${Math.round(post.processor.ours)} beside ${Math.round(post.processor.bare)}, statuses ${Math.round(statuses.processor.ours)} beside ${Math.round(statuses.processor.bare)}.
- GET began with two statements, 125 µs and a ratio of 0.39 on a quiet machine. The caller is remembered now, and the statement that loads the environment tells whether they still hold (\`src/platform/access/remembered.ts\`): 101 µs. That statement is built once instead of with every request, and goes over one connection with those of other requests, whose writes are one system call (\`src/platform/database/line.ts\`): 81 µs, and 29 µs instead of 85 µs in PostgreSQL, which is less than the 33 µs that the bare server's own statement costs there over 16 connections. The log is written in blocks instead of lines, and hooks no longer make promises.
- The program's own process took 119 MiB when it had started: Docker's client with gRPC and SSH (16 MiB), the client of outgoing calls (13), execa (8), JWTs, YAML and others are loaded when they are needed, compiled code is kept in \`node_modules/.cache/compile\` (9 MiB less, and half of the time that loading takes), and what the start leaves in the heap goes back to the machine when there is nothing to do (\`src/kernel/idle.ts\`, 40 MiB): 67 MiB. PostgreSQL works without the processes that read ahead and replicate (8 MiB).
- Reads from the large database beside the empty one: ${crowd.map(({ path, ratio }) => `\`${path}\` ${ratio.toFixed(2)}`).join(', ')}. The projects are those of the organization in which the POST was measured, some ten thousand, beside a page of 20 out of 20: \`total_count\` counts them with each page.
`;
}
