import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect } from 'vitest';
import { Collector, RETENTION_TASKS } from '#app/housekeeping/index.ts';
import { start, tokenFile, type Running } from '#app/start.ts';
import { sql } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { removeUnusedSecretVersions } from '#services/capabilities/variables/index.ts';
import { systemContext } from '#platform/context.ts';
import { makeRepositoryRoot, type TestRepository } from '#test/harness/repository.ts';

/** Releases that are kept: the least that the settings take. */
export const KEPT = 10;
const PORT = 8080;

/** The program in this process, on a data directory, a database and a runtime of its own. */
export class Program {
  readonly dataDir: string;
  readonly running: Running;
  readonly #repositories: ReturnType<typeof makeRepositoryRoot>;

  private constructor(dataDir: string, running: Running, repositories: ReturnType<typeof makeRepositoryRoot>) {
    this.dataDir = dataDir;
    this.running = running;
    this.#repositories = repositories;
  }

  static async start(settings: Record<string, string>, below = tmpdir()): Promise<Program> {
    const dataDir = realpathSync(mkdtempSync(path.join(below, 'qd-housekeeping-')));
    // What runs under other accounts has to reach its folders.
    chmodSync(dataDir, 0o755);
    const repositories = makeRepositoryRoot();
    const running = await start(
      readSettings({
        QUARTERDECK_DATA_DIR: dataDir,
        QUARTERDECK_PORT: '0',
        QUARTERDECK_PROXY_PORT: '0',
        QUARTERDECK_OPERATIONS_PORT: '0',
        QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
        QUARTERDECK_KEPT_RELEASES: String(KEPT),
        QUARTERDECK_KEPT_DEPLOYMENTS: String(KEPT),
        QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
        ...settings,
      }),
      pino({ level: 'silent' }),
    );
    return new Program(dataDir, running, repositories);
  }

  makeRepository(): TestRepository {
    return this.#repositories.make();
  }

  /** Asks the API as the administrator; answers what it says. */
  async ask(method: string, route: string, body?: unknown): Promise<any> {
    const { status, text } = await this.send(method, route, body);
    expect(status, `${method} ${route}: ${text}`).toBeLessThan(300);
    return text ? JSON.parse(text) : undefined;
  }

  async send(method: string, route: string, body?: unknown): Promise<{ status: number; text: string }> {
    const token = readFileSync(tokenFile(this.running.settings), 'utf8').trim();
    const response = await fetch(`${this.running.url}${route}`, {
      method,
      headers: {
        authorization: `Token ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  }

  /** Everything that recurs, two days later: some of it waits until nobody can still be at work. */
  async keepHouse(): Promise<void> {
    const { base, runtimes } = this.running;
    const platform = { ...base.platform, db: base.engineDatabase.db };
    await sql`update deployment set ended_at = ended_at - interval '2 days' where status = 'ENDED'`.execute(
      platform.db,
    );
    for (const task of RETENTION_TASKS) await task.run(platform, new AbortController().signal);
    const later = { ...systemContext(platform), clock: { now: () => new Date(Date.now() + 2 * 3_600_000) } };
    for (const context of [systemContext(platform), later]) await removeUnusedSecretVersions(context);
    const { nodeId, installation } = base;
    const collector = new Collector({ platform, runtimes, nodeId, installation, graceSeconds: 0 });
    await collector.collect();
    // Environments wait for their services.
    await platform.db
      .updateTable('tombstone')
      .set({ next_at: new Date(0) })
      .execute();
    await collector.collect();
  }

  /** Tombstones that could not be worked off. */
  async unfinished(): Promise<unknown[]> {
    const { db } = this.running.base.platform;
    return db.selectFrom('tombstone').select(['kind', 'last_error']).where('kind', '<>', 'DEPLOYMENT').execute();
  }

  /** Ends everything and removes the data directory. What was deployed has to be gone already. */
  async close(): Promise<void> {
    await this.running.stop();
    await this.running.runtimes.endProxy();
    rmSync(this.dataDir, { recursive: true, force: true });
    this.#repositories.remove();
  }
}

/** An application with storage, a file and a secret, in a project of its own. */
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

  /** Deploys what is committed and answers the state in which that ended, with why if it failed. */
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

  /** References of the images of kept releases. */
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

/** A program that answers on the port of the ports above and uses its storage. */
export const SERVER = `require('node:http').createServer((q, r) => r.end('ok')).listen(process.env.PORT || ${PORT});
require('node:fs').appendFileSync('/data/starts', 'x');`;
