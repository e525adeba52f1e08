/** Measures everything and writes RESULTS.md: `npm run bench`. */
import { loadavg } from 'node:os';
import { measureClaims } from './claims.ts';
import { measureCrowd } from './crowd.ts';
import { measureDeployments } from './deployments.ts';
import { measureDocker } from './docker.ts';
import { measureEveryDay } from './every-day.ts';
import { measureServices } from './services.ts';
import { measureFootprint } from './footprint.ts';
import { measureOneAgainstAll } from './one-against-all.ts';
import { startPart } from './processes.ts';
import { benchProxy } from './proxy.ts';
import { writeReport } from './report.ts';
import { getEnvironment, getStatuses, postProject, type Parts } from './requests.ts';
import { makingWith, seed, type Seed } from './seed.ts';

const loadBefore = loadavg()[0]!;

async function step<T>(what: string, work: () => Promise<T>): Promise<T> {
  console.log(`${what} …`);
  const figures = await work();
  console.log(figures);
  return figures;
}

async function measureService(parts: Parts) {
  const made = await seed(parts.service, parts.bare);
  const figures = {
    deployments: await step('deployments', () => measureDeployments(parts.service, made)),
    get: await step('GET of one environment', () => getEnvironment(parts, made)),
    statuses: await step('statuses of 100 environments', () => getStatuses(parts, made)),
    post: await step('POST of a project', () => postProject(parts, made)),
    oneAgainstAll: await step('one tenant beside another at its limits', () =>
      measureOneAgainstAll(parts.service, made, `/environment/${made.environmentIds[0]}`),
    ),
    services: await step('environments of many services', () => measureServices(parts, made)),
  };
  return { ...figures, crowd: await step('the same with a large database', () => crowd(made)) };
}

const parts: Parts = {
  service: startPart('service.ts', ['--expose-gc']),
  bare: startPart('bare.ts'),
  load: startPart('load.ts'),
};
/** The service that was measured so far gets a large database; another one has an empty one. */
async function crowd(crowded: Seed) {
  const other = startPart('service.ts', ['--expose-gc']);
  try {
    const empty = await seed(other, parts.bare);
    // A page of 20 out of many is measured beside a page of 20 out of 20.
    for (let n = empty.projects; n < 20; n++)
      await makingWith(empty)(`/organization/${empty.organizationId}/project`, { name: `another ${n}` });
    await parts.service.ask('crowd');
    return await measureCrowd(crowded, empty, parts.load);
  } finally {
    await other.end();
  }
}

const service = await measureService(parts).finally(async () => {
  for (const part of [parts.load, parts.bare, parts.service]) await part.end();
});
const claims = await step('claims', measureClaims);
const proxy = await step('proxy', benchProxy);
const docker = await step('deployments on a Docker Engine', measureDocker);
const everyDay = await step('what people do every day', measureEveryDay);
const footprint = await step('start and idle memory', measureFootprint);
await writeReport({ ...service, claims, proxy, docker, everyDay, footprint, loadBefore });
