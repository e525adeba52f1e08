import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { sql } from '#platform/database/index.ts';
import type { Program } from '#test/harness/program.ts';

/** Answer of the application, with a part from each other service. */
export interface Answer {
  release: string;
  note?: string;
  schema: string;
  stock?: string;
  events: string[];
  visits?: string;
  page?: string;
}

const WAIT = 'wait=300';

/** Environment with its services by their names, as its users reach it: over the API and the proxy. */
export class Place {
  readonly program: Program;
  readonly id: string;
  /** Path of each service, by its name. */
  readonly services: Record<string, string>;

  constructor(program: Program, id: string, services: Record<string, string>) {
    this.program = program;
    this.id = id;
    this.services = services;
  }

  idOf(name: string): string {
    return this.services[name]!.split('/')[2]!;
  }

  get serviceIds(): string[] {
    return Object.keys(this.services).map((name) => this.idOf(name));
  }

  /** Runs an action on the environment and returns the id of its execution. The error of another end shows the log. */
  async act(action: string, wanted: string, body?: object): Promise<string> {
    const { program, id } = this;
    const { state, last_deployment_id } = await program.ask('POST', `/environment/${id}/${action}?${WAIT}`, body);
    expect(state, await this.log()).toBe(wanted);
    return last_deployment_id;
  }

  async log(): Promise<string> {
    const lines = await this.program.ask('GET', `/environment/${this.id}/logs`);
    return lines.map((line: any) => line.message?.safe_message ?? line.error?.user_log_message ?? '').join('\n');
  }

  /** Returns the application's answer over the proxy, or its status if it is not 200. */
  async answer(): Promise<Answer | number> {
    const host = `app-z${this.idOf('web').slice(0, 8)}.localhost`;
    const { proxyPort: port } = this.program.running.settings;
    const { promise, resolve, reject } = Promise.withResolvers<Answer | number>();
    const sent = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      const { statusCode } = response;
      text(response).then((body) => {
        if (statusCode === 500) reject(new Error(body));
        else resolve(statusCode === 200 ? JSON.parse(body) : statusCode!);
      }, reject);
    });
    sent.on('error', reject).end();
    return promise;
  }

  /** Returns the final states of the runs of a job, the newest first. */
  async runs(job: string): Promise<string[]> {
    const { results } = await this.program.ask('GET', `${this.services[job]}/execution`);
    return results.map(({ event, state }: { event: string; state: string }) => `${event} ${state}`);
  }

  /** Makes the cron job due now, and waits until that run has ended. */
  async tick(): Promise<void> {
    const { db } = this.program.running.base.engineDatabase;
    const before = (await this.runs('tick')).length;
    const due = await sql`update cron_schedule set next_at = now() where service_id = ${this.idOf('tick')}`.execute(db);
    expect(due.numAffectedRows).toBe(1n);
    const poll = expect.poll(() => this.runs('tick'), { timeout: 60_000, interval: 100 });
    await poll.toEqual(Array.from({ length: before + 1 }, () => 'CRON SUCCEEDED'));
  }

  /** Replaces the contents of the database by the backup. */
  async restore(database: string, backupId: string): Promise<void> {
    const url = `${this.services[database]}/restore`;
    const plan = await this.program.ask('POST', url, { backup_id: backupId });
    await this.program.ask('POST', `${url}/${plan.id}/run`);
    const poll = expect.poll(() => this.program.ask('GET', `${url}/${plan.id}`), { timeout: 90_000, interval: 200 });
    await poll.toMatchObject({ state: 'READY', error: null });
  }

  /** Clones the environment. */
  async clone(name: string): Promise<Place> {
    const { id } = await this.program.ask('POST', `/environment/${this.id}/clone`, { name });
    const services: Record<string, string> = {};
    for (const [service, path] of Object.entries(this.services)) {
      const kind = path.split('/')[1]!;
      const { results } = await this.program.ask('GET', `/environment/${id}/${kind}`);
      services[service] = `/${kind}/${results.find((one: { name: string }) => one.name === service).id}`;
    }
    return new Place(this.program, id, services);
  }

  /** Deletes the environment and waits until it is gone. */
  async delete(): Promise<void> {
    const log = this.log();
    await this.program.ask('DELETE', `/environment/${this.id}`);
    const gone = async () => (await this.program.send('GET', `/environment/${this.id}`)).status;
    await expect.poll(gone, { timeout: 120_000, interval: 100, message: await log }).toBe(404);
  }
}
