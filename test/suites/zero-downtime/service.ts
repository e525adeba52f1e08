import { setTimeout as sleep } from 'node:timers/promises';
import type { TestRepository } from '#test/harness/repository.ts';
import { trafficApplication, type TrafficTarget } from '#test/harness/traffic.ts';
import type { Installation } from './program.ts';

/** Seconds for which an old instance may finish pending requests. */
export const GRACE_SECONDS = 4;

/** Application that is deployed through the API, and its address. */
export class Service {
  readonly #installation: Installation;
  readonly #repository: TestRepository;
  readonly projectId: string;
  readonly id: string;
  readonly environmentId: string;
  /** Port on which releases listen from now on. */
  #port = 8080;
  #instances = 1;

  private constructor(
    installation: Installation,
    repository: TestRepository,
    ids: { projectId: string; environmentId: string; id: string },
  ) {
    this.#installation = installation;
    this.#repository = repository;
    this.projectId = ids.projectId;
    this.environmentId = ids.environmentId;
    this.id = ids.id;
  }

  /** Creates the application in a project of its own, without a deployment. */
  static async make(installation: Installation, repository: TestRepository): Promise<Service> {
    const ask = (method: string, path: string, body?: unknown) => askApi(installation, method, path, body);
    const { results } = await ask('GET', '/organization');
    const project = await ask('POST', `/organization/${results[0].id}/project`, { name: `zero-${Date.now()}` });
    const environment = await ask('POST', `/project/${project.id}/environment`, { name: 'e', mode: 'PRODUCTION' });
    const body = description(repository, 8080, 1);
    const application = await ask('POST', `/environment/${environment.id}/application`, body);
    await ask('PUT', `/application/${application.id}/advancedSettings`, {
      'deployment.termination_grace_period_seconds': GRACE_SECONDS,
    });
    return new Service(installation, repository, {
      projectId: project.id,
      environmentId: environment.id,
      id: application.id,
    });
  }

  get target(): TrafficTarget {
    return { port: this.#installation.proxyPort, host: `app-z${this.id.slice(0, 8)}.localhost` };
  }

  ask(method: string, path: string, body?: unknown): Promise<any> {
    return askApi(this.#installation, method, path, body);
  }

  /** Commits an application that answers with the name. */
  commit(release: string): string {
    return this.commitProgram(trafficApplication(release), `release ${release}`);
  }

  commitProgram(program: string, message: string, dockerfile = dockerfileFor(this.#port)): string {
    return this.#repository.commit({ Dockerfile: dockerfile, 'server.cjs': program }, { message });
  }

  /** Deploys a commit and returns the final state. */
  async deploy(commit?: string): Promise<string> {
    await this.request('deploy', commit ? { git_commit_id: commit } : undefined);
    return this.ended();
  }

  /** Requests an action without waiting for its end. */
  async request(action: string, body?: unknown): Promise<void> {
    await this.ask('POST', `/application/${this.id}/${action}`, body);
  }

  async lastExecution(): Promise<string> {
    return (await this.ask('GET', `/application/${this.id}/status`)).execution_id;
  }

  /** Returns the state once nothing is in progress; waits for a control plane that is down. */
  async ended(): Promise<string> {
    for (const end = Date.now() + 120_000; ;) {
      const status = await this.#status();
      if (status && /^(DEPLOYED|RESTARTED|STOPPED|CANCELED|.*_ERROR)$/.test(status.state)) return status.state;
      if (Date.now() > end) throw new Error(`It does not end: ${JSON.stringify(status)}`);
      await sleep(100);
    }
  }

  /** Waits until the state is one of `states`; also waits for a control plane that is down. */
  async is(...states: string[]): Promise<void> {
    for (const end = Date.now() + 60_000; ;) {
      const status = await this.#status();
      if (status && states.includes(status.state)) return;
      if (Date.now() > end) throw new Error(`It is not ${states.join(' or ')}: ${JSON.stringify(status)}`);
      await sleep(20);
    }
  }

  async scale(instances: number): Promise<string> {
    this.#instances = instances;
    await this.#configure();
    return this.deploy();
  }

  /** Moves the next release to another port; returns its commit. */
  async moveTo(port: number, release: string): Promise<string> {
    this.#port = port;
    await this.#configure();
    return this.commit(release);
  }

  async #configure(): Promise<void> {
    await this.ask('PUT', `/application/${this.id}`, description(this.#repository, this.#port, this.#instances));
  }

  /** Removes the service and waits until it is gone. */
  async remove(): Promise<void> {
    await this.ask('DELETE', `/project/${this.projectId}`);
    for (const end = Date.now() + 60_000; ;) {
      const { status } = await send(this.#installation, 'GET', `/project/${this.projectId}`);
      if (status === 404) return;
      if (Date.now() > end) throw new Error('The project is not removed.');
      await sleep(100);
    }
  }

  async #status(): Promise<{ state: string } | null> {
    try {
      return await this.ask('GET', `/application/${this.id}/status`);
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }
}

const dockerfileFor = (port: number) => `FROM node:24-alpine
WORKDIR /app
COPY server.cjs .
ENV PORT=${port}
CMD ["node", "server.cjs"]
`;

const description = (repository: TestRepository, port: number, instances: number) => ({
  name: 'zero',
  build_mode: 'DOCKER',
  dockerfile_path: 'Dockerfile',
  git_repository: { url: repository.url, branch: 'main' },
  min_running_instances: instances,
  max_running_instances: instances,
  ports: [{ internal_port: port, publicly_accessible: true, protocol: 'HTTP' }],
  healthchecks: {
    readiness_probe: { type: { http: { port, path: '/' } }, initial_delay_seconds: 0, period_seconds: 1 },
  },
});

async function askApi(installation: Installation, method: string, path: string, body?: unknown): Promise<any> {
  const { status, text } = await send(installation, method, path, body);
  if (status >= 300)
    throw new Error(`${method} ${path} answered ${status}: ${text}${status >= 500 ? `\n${installation.errors}` : ''}`);
  return text ? JSON.parse(text) : undefined;
}

async function send({ url, token }: Installation, method: string, path: string, body?: unknown) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Token ${token}`,
      connection: 'close',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}
