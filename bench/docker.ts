/** Deployments on a real Docker Engine beside the same done by hand with `git` and `docker`. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopProxy } from '#runtimes/proxy/builtin/index.ts';
import { findOrStartEngine, stopEngine, type TestEngine } from '#test/harness/docker-engine.ts';
import { ensureBaseImages } from '#test/harness/docker-images.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';
import { makeRepositoryRoot, type TestRepository } from '#test/harness/repository.ts';
import { median } from './processes.ts';

const MAIN = path.join(import.meta.dirname, '../src/main.ts');
const EXAMPLE = path.join(import.meta.dirname, '../examples/hello');
const ROUNDS = 5;

export interface DockerFigures {
  /** ms, medians: POST deploy until DEPLOYED, and by hand until it answers. */
  first: { ours: number; byHand: number };
  unchanged: { ours: number; byHand: number };
}

/** Undefined where no engine can be had. */
export async function measureDocker(): Promise<DockerFigures | undefined> {
  let engine: TestEngine;
  try {
    engine = await findOrStartEngine(process.env);
  } catch (error) {
    console.log((error as Error).message);
    return undefined;
  }
  const repositories = makeRepositoryRoot();
  try {
    await ensureBaseImages(engine.socketPath);
    return await measureOn(engine, repositories.make('measured'));
  } finally {
    repositories.remove();
    await stopEngine(engine);
  }
}

async function measureOn(engine: TestEngine, repository: TestRepository): Promise<DockerFigures> {
  const directory = mkdtempSync(path.join(tmpdir(), 'bench-docker-'));
  chmodSync(directory, 0o755);
  const service = await startService(directory, engine, path.dirname(repository.url));
  const docker = dockerOf(engine);
  const figures = { first: [[], []], unchanged: [[], []] } as Record<'first' | 'unchanged', [number[], number[]]>;
  try {
    cpSync(EXAMPLE, repository.url, { recursive: true });
    const application = await service.makeApplication(repository.url);
    // The first of each is not counted: it brings into memory what all the others find there.
    for (let round = 0; round <= ROUNDS; round++) {
      const counted = round > 0;
      change(repository, `ours ${round}`);
      const first = await timed(() => service.deploy(application));
      const unchanged = await timed(() => service.deploy(application));
      change(repository, `by hand ${round}`);
      const image = `measured:${round}`;
      const byHand = await timed(() => buildByHand(docker, repository, directory, image));
      const run = await timed(() => runByHand(docker, image));
      if (!counted) continue;
      figures.first[0].push(first);
      figures.unchanged[0].push(unchanged);
      figures.first[1].push(byHand);
      figures.unchanged[1].push(run);
    }
  } finally {
    await service.end();
    rmSync(directory, { recursive: true, force: true });
  }
  const of = ([ours, byHand]: [number[], number[]]) => ({ ours: median(ours), byHand: median(byHand) });
  return { first: of(figures.first), unchanged: of(figures.unchanged) };
}

/** A commit that leaves no layer of the image but its base as it was. */
function change(repository: TestRepository, text: string): void {
  const dockerfile = readFileSync(path.join(EXAMPLE, 'Dockerfile'), 'utf8');
  const [from, ...rest] = dockerfile.split(/^(?=WORKDIR|COPY|RUN|ENV|CMD)/m);
  repository.commit({ Dockerfile: [from, `ENV MEASURED="${text}"\n`, ...rest].join('') });
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

type DockerCommand = (...args: string[]) => string;

const dockerOf =
  ({ socketPath }: TestEngine): DockerCommand =>
  (...args) =>
    execFileSync('docker', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      // The client that came with the engine: a newer one in front of it may lack what it builds with.
      env: {
        PATH: `/usr/bin:${process.env.PATH}`,
        HOME: tmpdir(),
        DOCKER_HOST: `unix://${socketPath}`,
        DOCKER_BUILDKIT: '1',
      },
    }).trim();

async function buildByHand(docker: DockerCommand, repository: TestRepository, directory: string, image: string) {
  const checkout = path.join(directory, 'by-hand');
  rmSync(checkout, { recursive: true, force: true });
  execFileSync('git', ['clone', '--quiet', '--depth', '1', '--', `file://${repository.url}`, checkout]);
  docker('build', '--quiet', '--tag', image, checkout);
  await runByHand(docker, image);
}

async function runByHand(docker: DockerCommand, image: string): Promise<void> {
  const id = docker('run', '--detach', '--env', 'PORT=3000', image);
  const address = docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', id);
  await answering(`http://${address}:3000/`);
  docker('rm', '--force', id);
}

async function answering(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) return;
    await sleep(5);
  }
}

interface Service {
  makeApplication(url: string): Promise<string>;
  deploy(application: string): Promise<void>;
  end(): Promise<void>;
}

async function startService(directory: string, engine: TestEngine, gitRoot: string): Promise<Service> {
  const child = spawn(process.execPath, [MAIN, 'start'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...MADE_IMAGES,
      PATH: process.env.PATH,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      QUARTERDECK_DATA_DIR: directory,
      QUARTERDECK_PORT: '0',
      QUARTERDECK_OPERATIONS_PORT: '0',
      QUARTERDECK_PROXY: 'builtin',
      QUARTERDECK_PROXY_PORT: '0',
      QUARTERDECK_RUNTIME: 'docker',
      QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
      QUARTERDECK_LOCAL_GIT_ROOTS: gitRoot,
    },
  });
  const exited = once(child, 'exit');
  const url = await listensOn(child.stdout);
  const token = readFileSync(path.join(directory, 'admin-token'), 'utf8').trim();
  const call = async (method: string, at: string, body?: unknown): Promise<{ id: string; state: string }> => {
    const answer = await fetch(url + at, {
      method,
      headers: { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!answer.ok) throw new Error(`${at} answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as { id: string; state: string };
  };
  return {
    makeApplication: async (repository) => {
      const { id: organization } = await call('GET', '/organization');
      const project = await call('POST', `/organization/${organization}/project`, { name: 'measured' });
      const environment = await call('POST', `/project/${project.id}/environment`, { name: 'measured' });
      const application = await call('POST', `/environment/${environment.id}/application`, {
        name: 'hello',
        git_repository: { url: repository, branch: 'main' },
        dockerfile_path: 'Dockerfile',
        ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
      });
      return application.id;
    },
    deploy: async (application) => {
      const { state } = await call('POST', `/application/${application}/deploy?wait=60`);
      if (state !== 'DEPLOYED') throw new Error(`A deployment ended ${state}.`);
    },
    end: async () => {
      child.kill('SIGTERM');
      await exited;
      await stopProxy(path.join(directory, 'proxy'));
    },
  };
}

/** The address that the program says it is ready at. */
async function listensOn(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    output.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const [, url] = /is ready in[\s\S]*?(http:\/\/127\.0\.0\.1:\d+)/.exec(text) ?? [];
      if (url) resolve(url);
    });
    output.once('end', () => reject(new Error(`The program ended before it was ready:\n${text}`)));
  });
}
