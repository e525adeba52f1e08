import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { expect } from 'vitest';
import { Collector, RETENTION_TASKS } from '#housekeeping/index.ts';
import { tokenFile } from '#clusters/first-steps.ts';
import { start, type Running } from '#app/start.ts';
import { sql } from '#platform/database/index.ts';
import { readSettings } from '#platform/settings/index.ts';
import { removeUnusedSecretVersions } from '#services/capabilities/variables/index.ts';
import { systemContext } from '#platform/context.ts';
import { removeEverything } from '#test/harness/remove-everything.ts';
import { makeRepositoryRoot, type TestRepository } from '#test/harness/repository.ts';
import { MADE_IMAGES } from '#test/harness/made-images.ts';

/** Number of kept releases: the least that the settings allow. */
export const KEPT = 10;

/** Program in this process, on a data directory, a database and a runtime of its own. */
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
    const dataDir = realpathSync(mkdtempSync(path.join(below, 'qd-program-')));
    // Programs under other accounts must reach their folders.
    chmodSync(dataDir, 0o755);
    const repositories = makeRepositoryRoot();
    const running = await start(
      readSettings({
        QUARTERDECK_DATA_DIR: dataDir,
        QUARTERDECK_PORT: '0',
        QUARTERDECK_PROXY_PORT: '0',
        QUARTERDECK_OPERATIONS_PORT: '0',
        QUARTERDECK_TERRAFORM_STATE_PORT: '0',
        QUARTERDECK_RATE_LIMIT_PER_HOUR: '0',
        QUARTERDECK_KEPT_RELEASES: String(KEPT),
        QUARTERDECK_KEPT_DEPLOYMENTS: String(KEPT),
        QUARTERDECK_LOCAL_GIT_ROOTS: repositories.folder,
        ...MADE_IMAGES,
        ...settings,
      }),
      pino({ level: 'silent' }),
    );
    return new Program(dataDir, running, repositories);
  }

  makeRepository(): TestRepository {
    return this.#repositories.make();
  }

  /** Calls the API as the administrator; returns the body. */
  async ask(method: string, route: string, body?: unknown): Promise<any> {
    const { status, text } = await this.send(method, route, body);
    expect(status, `${method} ${route}: ${text}`).toBeLessThan(300);
    return text ? JSON.parse(text) : undefined;
  }

  async send(method: string, route: string, body?: unknown): Promise<{ status: number; text: string }> {
    return this.#send(method, route, body === undefined ? null : JSON.stringify(body), 'application/json');
  }

  /** Puts a text that is no JSON, such as a kubeconfig. */
  async putText(route: string, text: string, type: string): Promise<void> {
    const { status, text: answer } = await this.#send('PUT', route, text, type);
    expect(status, answer).toBeLessThan(300);
  }

  /** Uploads a tar archive; returns the body of the answer. */
  async upload(route: string, archive: Buffer<ArrayBuffer>, type = 'application/gzip'): Promise<any> {
    const { status, text } = await this.#send('POST', route, archive, type);
    expect(status, text).toBe(202);
    return JSON.parse(text);
  }

  async #send(method: string, route: string, body: string | Buffer<ArrayBuffer> | null, type: string) {
    const token = readFileSync(tokenFile(this.running.settings), 'utf8').trim();
    const response = await fetch(`${this.running.url}${route}`, {
      method,
      headers: {
        authorization: `Token ${token}`,
        ...(body === null ? {} : { 'content-type': type }),
      },
      body,
    });
    return { status: response.status, text: await response.text() };
  }

  /** Runs all recurring tasks as if two days had passed: some wait until no worker can still use what they remove. */
  async keepHouse(): Promise<void> {
    const { base, runtimes } = this.running;
    const platform = { ...base.platform, db: base.engineDatabase.db };
    // A service shows its end shortly before its deployment ends; until then nothing is collected.
    const open = platform.db.selectFrom('deployment').select('id').where('status', '<>', 'ENDED');
    await expect.poll(() => open.execute()).toEqual([]);
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
    // A run removes its checkouts a moment after its end.
    await expect.poll(() => this.#checkoutsOfDeployments(), { timeout: 20_000 }).toEqual([]);
  }

  async #checkoutsOfDeployments(): Promise<unknown[]> {
    const folder = path.join(this.dataDir, 'checkouts');
    const ids = existsSync(folder) ? readdirSync(folder) : [];
    const { db } = this.running.base.platform;
    return ids.length === 0 ? [] : db.selectFrom('deployment').select('id').where('id', 'in', ids).execute();
  }

  /** Returns the remaining tombstones, other than those of deployments, with their last errors. */
  async unfinished(): Promise<unknown[]> {
    const { db } = this.running.base.platform;
    return db.selectFrom('tombstone').select(['kind', 'last_error']).where('kind', '<>', 'DEPLOYMENT').execute();
  }

  /** Stops everything, also what a failed test left deployed, and removes the data directory. */
  async close(): Promise<void> {
    const { runtimes, runtime } = this.running;
    await removeEverything(await runtimes.onMachine(runtime));
    await this.running.stop();
    await this.running.runtimes.endProxy();
    rmSync(this.dataDir, { recursive: true, force: true });
    this.#repositories.remove();
  }
}
