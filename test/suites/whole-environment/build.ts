import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Program } from '#test/harness/program.ts';
import type { TestRegistry } from '#test/harness/registry.ts';
import type { TestRepository } from '#test/harness/repository.ts';
import { Place } from './place.ts';
import { addClient, MODULE, pageScript, PORT, sourceOf, STOCK_SCRIPT } from './programs.ts';

/** Runtime of a test, and the programs on it. */
export interface Stage {
  program: Program;
  /** Version of PostgreSQL. */
  postgresql: string;
  /** Request field for the version of Terraform; null if the program is not installed. */
  terraform: object | null;
  /** Registry of images, and the images of Redis and MySQL; null if the runtime pulls none. */
  images: { registry: TestRegistry; redis: string; mysql: string } | null;
  /** Returns the traces on the machine outside of the data directory. */
  machine(): unknown;
  /** Returns what remains of these services on the machine. */
  leftOf(serviceIds: string[]): Promise<string[]> | string[];
}

/** Sources of the environment, which tests change. */
export interface Sources {
  code: TestRepository;
  projectId: string;
}

/** Pushes the next release to repository and registry. */
export async function release({ images }: Stage, { code }: Pick<Sources, 'code'>, name: string): Promise<void> {
  code.commit(sourceOf(name));
  if (!images) return;
  const busybox = readFileSync(execFileSync('which', ['busybox'], { encoding: 'utf8' }).trim());
  await images.registry.pushImage('acme/page', name, {
    files: { 'bin/busybox': { content: busybox, mode: 0o755 }, 'www/index.html': '' },
    config: { Cmd: ['/bin/busybox', 'sh', '-c', pageScript(name)], Env: ['PATH=/bin'] },
  });
}

/** Creates an environment with a service of each kind that the runtime supports; each uses something of another. */
export async function build(stage: Stage): Promise<{ place: Place; sources: Sources }> {
  const { program, images } = stage;
  const organization = (await program.ask('GET', '/organization')).results[0].id;
  const project = await program.ask('POST', `/organization/${organization}/project`, { name: `whole ${Date.now()}` });
  const { id } = await program.ask('POST', `/project/${project.id}/environment`, { name: 'first' });
  const sources = { code: program.makeRepository(), projectId: project.id };
  addClient(sources.code.url);
  await release(stage, sources, '1');
  const services: Record<string, string> = {};
  const make = async (name: string, kind: string, body: object): Promise<void> => {
    const made = await program.ask('POST', `/environment/${id}/${kind}`, { name, ...body });
    services[name] = `/${kind}/${made.id}`;
  };
  const registry = images && (await makeRegistry(program, organization, images.registry));
  await makeDatabases(stage, make);
  await makeJobs(sources, make);
  if (images) await makeOfImages(images, registry!, make);
  if (stage.terraform) await makeTerraform(stage, make);
  await make('web', 'application', {
    git_repository: { url: sources.code.url, branch: 'main' },
    dockerfile_path: 'Dockerfile',
    ports: [{ internal_port: PORT, publicly_accessible: true, protocol: 'HTTP' }],
    healthchecks: { readiness_probe: { type: { tcp: { port: PORT } }, initial_delay_seconds: 0, period_seconds: 1 } },
  });
  const place = new Place(program, id, services);
  for (const name of ['web', 'page'])
    if (services[name])
      await program.ask('PUT', `${services[name]}/advancedSettings`, {
        'deployment.termination_grace_period_seconds': 1,
      });
  await tellEachOther(place);
  if (stage.terraform) await putFirst(place, 'infra');
  return { place, sources };
}

type Make = (name: string, kind: string, body: object) => Promise<void>;

async function makeRegistry(program: Program, organization: string, { url }: TestRegistry): Promise<string> {
  const body = { name: `images ${Date.now()}`, kind: 'GENERIC_CR', url, config: {} };
  return (await program.ask('POST', `/organization/${organization}/containerRegistry`, body)).id;
}

async function makeDatabases({ postgresql, images }: Stage, make: Make): Promise<void> {
  const given = { memory: 512, storage: 1, accessibility: 'PRIVATE' };
  await make('store', 'database', { ...given, type: 'POSTGRESQL', version: postgresql, mode: 'MANAGED' });
  if (!images) return;
  await make('cache', 'database', { ...given, type: 'REDIS', version: images.redis, mode: 'CONTAINER' });
  await make('goods', 'database', { ...given, type: 'MYSQL', version: images.mysql, mode: 'CONTAINER' });
}

async function makeJobs({ code }: Sources, make: Make): Promise<void> {
  const git_repository = { url: code.url, branch: 'main' };
  const source = { docker: { git_repository, dockerfile_path: 'job.Dockerfile' } };
  const events = { on_start: 'up', on_stop: 'down', on_delete: 'gone' };
  const schedule = Object.fromEntries(Object.entries(events).map(([event, word]) => [event, { arguments: [word] }]));
  await make('tables', 'job', { source, schedule });
  await make('tick', 'job', { source, schedule: { cronjob: { scheduled_at: '@yearly', arguments: ['tick'] } } });
}

async function makeOfImages({ mysql }: NonNullable<Stage['images']>, registry_id: string, make: Make): Promise<void> {
  await make('count', 'job', {
    source: { image: { registry_id, image_name: 'library/mysql', tag: mysql } },
    schedule: { on_start: { entrypoint: 'sh', arguments: ['-c', STOCK_SCRIPT] } },
  });
  await make('page', 'container', {
    registry_id,
    image_name: 'acme/page',
    tag: '1',
    ports: [{ internal_port: PORT, publicly_accessible: false, protocol: 'HTTP' }],
    healthchecks: { readiness_probe: { type: { tcp: { port: PORT } }, initial_delay_seconds: 0, period_seconds: 1 } },
  });
}

async function makeTerraform({ program, terraform }: Stage, make: Make): Promise<void> {
  const repository = program.makeRepository();
  repository.commit({ 'main.tf': MODULE });
  await make('infra', 'terraform', {
    backend: { kubernetes: {} },
    terraform_files_source: { git: { git_repository: { url: repository.url, branch: 'main' } } },
    provider_version: terraform,
  });
}

/** Creates aliases of built-in variables, under the names that other services read. */
async function tellEachOther({ program, id, services }: Place): Promise<void> {
  const url = `/environment/${id}`;
  const aliases: [name: string, part: string, key: string, secret?: true][] = [
    ['store', 'HOST_INTERNAL', 'DATABASE_HOST'],
    ['store', 'DATABASE_URL_INTERNAL', 'DATABASE_URL', true],
    ['cache', 'HOST_INTERNAL', 'CACHE_HOST'],
    ['cache', 'PASSWORD_INTERNAL', 'CACHE_PASSWORD', true],
    ['goods', 'HOST_INTERNAL', 'STOCK_HOST'],
    ['goods', 'LOGIN_INTERNAL', 'STOCK_LOGIN'],
    ['goods', 'PASSWORD_INTERNAL', 'MYSQL_PWD', true],
    ['page', 'HOST_INTERNAL', 'PAGE_HOST'],
  ];
  const known = {
    environmentVariable: (await program.ask('GET', `${url}/environmentVariable`)).results,
    secret: (await program.ask('GET', `${url}/secret`)).results,
  };
  for (const [name, part, key, secret] of aliases) {
    if (!services[name]) continue;
    const kind = secret ? 'secret' : 'environmentVariable';
    const short = services[name].split('/')[2]!.slice(0, 8).toUpperCase();
    const builtIn = known[kind].find((one: { key: string }) => one.key.endsWith(`_Z${short}_${part}`));
    await program.ask('POST', `${url}/${kind}/${builtIn.id}/alias`, { key });
  }
  const variables = { TF_VAR_database: '{{DATABASE_HOST}}', TF_VAR_word: 'first note' };
  for (const [key, value] of Object.entries(variables))
    await program.ask('POST', `${url}/environmentVariable`, { key, value });
}

/** Moves a service to the databases' stage, so that the jobs can use its outputs. */
async function putFirst({ program, id, services }: Place, name: string): Promise<void> {
  const { results } = await program.ask('GET', `/environment/${id}/deploymentStage`);
  const [, serviceId] = services[name]!.slice(1).split('/');
  await program.ask('PUT', `/deploymentStage/${results[0].id}/service/${serviceId}`);
}
