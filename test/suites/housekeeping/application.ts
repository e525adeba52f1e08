import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Program } from '#test/harness/program.ts';
import type { TestRepository } from '#test/harness/repository.ts';

const PORT = 8080;

/** Application with storage, a file and a secret, in a project of its own. */
export class Application {
  readonly id: string;
  readonly environmentId: string;
  readonly projectId: string;
  readonly #program: Program;
  readonly #repository: TestRepository;
  readonly #dockerfile: string;

  private constructor(
    program: Program,
    repository: TestRepository,
    ids: { id: string; environmentId: string; projectId: string },
    dockerfile: string,
  ) {
    this.#program = program;
    this.#repository = repository;
    this.#dockerfile = dockerfile;
    this.id = ids.id;
    this.environmentId = ids.environmentId;
    this.projectId = ids.projectId;
  }

  static async make(program: Program, dockerfile: string): Promise<Application> {
    const repository = program.makeRepository();
    const { results } = await program.ask('GET', '/organization');
    const project = await program.ask('POST', `/organization/${results[0].id}/project`, { name: `p-${Date.now()}` });
    const environment = await program.ask('POST', `/project/${project.id}/environment`, { name: 'e' });
    const application = await program.ask('POST', `/environment/${environment.id}/application`, {
      name: 'a',
      build_mode: 'DOCKER',
      dockerfile_path: 'Dockerfile',
      git_repository: { url: repository.url, branch: 'main' },
      ports: [{ internal_port: PORT, publicly_accessible: true, protocol: 'HTTP' }],
      storage: [{ mount_point: '/data', size: 1, type: 'FAST_SSD' }],
      healthchecks: {},
    });
    await program.ask('PUT', `/application/${application.id}/advancedSettings`, {
      'deployment.termination_grace_period_seconds': 1,
    });
    await program.ask('POST', `/application/${application.id}/environmentVariable`, {
      key: 'CONFIG',
      value: 'a: 1',
      mount_path: '/etc/app/config.yml',
    });
    const ids = { id: application.id, environmentId: environment.id, projectId: project.id };
    return new Application(program, repository, ids, dockerfile);
  }

  commit(): void {
    this.#repository.commit({ Dockerfile: this.#dockerfile, version: String(Math.random()) });
  }

  /** Deploys the last commit and returns the final state, with the reason of a failure. */
  async deploy(): Promise<{ state: string; error: string | null }> {
    await this.#program.ask('POST', `/application/${this.id}/deploy`);
    for (;;) {
      const { state } = await this.#program.ask('GET', `/application/${this.id}/status`);
      if (/^(DEPLOYED|CANCELED|.*_ERROR)$/.test(state)) return { state, error: await this.#error() };
      await sleep(30);
    }
  }

  /** Deletes the project and waits until it is gone. */
  async delete(): Promise<void> {
    await this.#program.ask('DELETE', `/project/${this.projectId}`);
    await expect
      .poll(async () => (await this.#program.send('GET', `/project/${this.projectId}`)).status, { timeout: 60_000 })
      .toBe(404);
  }

  /** Returns the references of the images of kept releases. */
  async releasedImages(): Promise<string[]> {
    const rows = await this.#program.running.base.platform.db
      .selectFrom('release')
      .select('image')
      .where('service_id', '=', this.id)
      .execute();
    return [...new Set(rows.map((row) => row.image!))].toSorted();
  }

  async #error(): Promise<string | null> {
    const row = await this.#program.running.base.platform.db
      .selectFrom('deployment_service')
      .select('error')
      .where('service_id', '=', this.id)
      .orderBy('number', 'desc')
      .executeTakeFirst();
    return row?.error ?? null;
  }
}

/** Program that answers on the port of the ports above and uses its storage. */
export const SERVER = `require('node:http').createServer((q, r) => r.end('ok')).listen(process.env.PORT || ${PORT});
require('node:fs').appendFileSync('/data/starts', 'x');`;
