import { median } from './processes.ts';
import { getPath, type Pair, type Parts } from './requests.ts';
import type { Seed } from './seed.ts';

const SIZES = [10, 100, 1000];
const ROUNDS = 5;

/** Cost of an environment by its number of services, in milliseconds: medians of five rounds. */
export interface EnvironmentCost {
  services: number;
  statuses: number;
  plan: number;
  /** From the request to the end of its deployment. */
  deploy: number;
}

export interface ServiceFigures {
  costs: EnvironmentCost[];
  /** The statuses of 100 services in one request, beside the statement that finds them. */
  statuses: Pair;
}

/**
 * Measures the statuses, the plan and a deployment of environments. Their services are of all kinds that the fake runtime deploys without a
 * registry.
 */
export async function measureServices(parts: Parts, seed: Seed): Promise<ServiceFigures> {
  const costs: EnvironmentCost[] = [];
  let ofHundred: string | undefined;
  await parts.service.ask('startWorker');
  for (const services of SIZES) {
    const environmentId = await makeEnvironment(seed, services);
    const at = `/environment/${environmentId}`;
    const deploys: number[] = [];
    for (let round = 0; round < 3; round++) {
      const started = performance.now();
      await send(seed, 'POST', `${at}/deploy`);
      await parts.service.ask('drained');
      deploys.push(performance.now() - started);
      const { state, error } = await send(seed, 'GET', `${at}/status`);
      if (state !== 'DEPLOYED')
        throw new Error(
          `The environment of ${services} services is ${state}: ${error?.message ?? 'no reason is told'}`,
        );
    }
    costs.push({
      services,
      statuses: await took(() => send(seed, 'GET', `${at}/statuses`)),
      plan: await took(() => send(seed, 'GET', `${at}/deploymentPlan`)),
      deploy: median(deploys),
    });
    if (services === 100) ofHundred = at;
  }
  // The recording contains all statements of the process, also those of a worker that polls for work.
  await parts.service.ask('stopWorker');
  return { costs, statuses: await getPath(parts, seed, `${ofHundred}/statuses`) };
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
  }
  return median(times);
}

/** Parts of answers that are read here. */
interface Answered {
  id: string;
  state: string;
  error?: { message: string } | null;
}

async function send({ url, token }: Seed, method: string, path: string, body?: unknown): Promise<Answered> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text) as Answered;
}

async function makeEnvironment(seed: Seed, services: number): Promise<string> {
  const registry = { name: `images ${services}`, kind: 'GENERIC_CR', url: 'https://registry.example', config: {} };
  const { id: registry_id } = await send(
    seed,
    'POST',
    `/organization/${seed.organizationId}/containerRegistry`,
    registry,
  );
  const environment = { name: `of ${services} services` };
  const { id } = await send(seed, 'POST', `/project/${seed.projectId}/environment`, environment);
  const git_repository = { url: 'https://git.example/hello.git', branch: 'main' };
  const ports = [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }];
  // By its digest, so that no registry is asked.
  const tag = `sha256:${'0'.repeat(64)}`;
  const kinds: [string, object][] = [
    ['application', { git_repository, dockerfile_path: 'Dockerfile', ports }],
    ['job', { source: { docker: { git_repository } }, schedule: { on_start: { arguments: [] } }, healthchecks: {} }],
    ['container', { registry_id, image_name: 'acme/web', tag, healthchecks: {}, ports }],
    [
      'terraform',
      {
        backend: { kubernetes: {} },
        terraform_files_source: { git: { git_repository } },
        provider_version: { explicit_version: '1.11.4' },
      },
    ],
  ];
  for (let n = 0; n < services; n++) {
    const [kind, body] = kinds[n % kinds.length]!;
    await send(seed, 'POST', `/environment/${id}/${kind}`, { ...body, name: `${kind} ${n}` });
  }
  return id;
}
