import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type {
  Handle,
  Observation,
  Runtime,
  TaskEnd,
  TaskSpec,
  WorkloadIdentity,
  WorkloadSpec,
} from '#runtimes/runtime.ts';
import type { TaskStep } from '#runtimes/fake/task-program.ts';
import {
  hostOf,
  newBuild,
  newContext,
  newIdentity,
  newSpec,
  newTask,
  writeFixture,
} from '#runtimes/contract/fixture.ts';
import { MemoryRouter } from '#runtimes/contract/memory-router.ts';
import type { HttpAnswer } from '#runtimes/contract/memory-router.ts';

/** What a runtime gets from the suite. */
export interface ContractSetup {
  /** Takes the routes of the runtime; the suite's requests go to the upstreams that it holds. */
  router: MemoryRouter;
  /** An empty folder for the runtime's state, removed at the end. */
  directory: string;
  /** Installation of every identity that the suite uses. */
  installation: string;
}

/** What the suite needs from a runtime. */
export interface ContractSubject {
  runtime: Runtime;
  /** Makes an image of the folder (it has a Dockerfile). Without it the runtime's own `build` is used. */
  image?(folder: string): Promise<string>;
  /** GET of a path for a host name. Without it the request goes to the upstreams that the runtime gave to the router. */
  get?(host: string, path: string): Promise<HttpAnswer>;
  /** Names of everything that is still there of a service: processes, containers, networks, folders, volumes. */
  leftovers(identity: WorkloadIdentity): Promise<string[]>;
  /** Another runtime object that knows only what a second process would know. Closed by the suite. */
  reopen(): Promise<Runtime>;
  /** Takes down what the test set up around the runtime, after `runtime.close()`. */
  close?(): Promise<void>;
}

/** Guarantees that not every runtime can give. */
type OptionalGuarantee = 'siblings' | 'storage' | 'absolutePaths' | 'programs' | 'egress';

export interface ContractOptions {
  /** FROM of the fixture's Dockerfile: an image with `node` on its PATH. */
  baseImage?: string;
  /** Milliseconds for one test. */
  timeoutMs?: number;
  /** Guarantees that this runtime does not give, with the reason. */
  without?: Partial<Record<OptionalGuarantee, string>>;
}

/**
 * A folder where files and storage are mounted, and how the application names it: a runtime without absolute paths has
 * only what lies below the WORKDIR.
 */
export const mountFolder = (options: ContractOptions): { mount: string; named: string } =>
  options.without?.absolutePaths
    ? { mount: '/app/contract', named: 'contract' }
    : { mount: '/srv/contract', named: '/srv/contract' };

export type MakeRuntime = (setup: ContractSetup) => Promise<ContractSubject>;

/** What the groups of the suite work with. */
export class Contract {
  readonly setup: ContractSetup;
  readonly subject: ContractSubject;
  readonly runtime: Runtime;
  /** Folder with the fixture's Dockerfile. */
  readonly folder: string;
  readonly image: string;
  readonly #identities: WorkloadIdentity[] = [];
  readonly #home: string;

  private constructor(home: string, setup: ContractSetup, subject: ContractSubject, folder: string, image: string) {
    this.#home = home;
    this.setup = setup;
    this.subject = subject;
    this.runtime = subject.runtime;
    this.folder = folder;
    this.image = image;
  }

  static async open(makeRuntime: MakeRuntime, options: ContractOptions): Promise<Contract> {
    const home = await mkdtemp(join(tmpdir(), 'runtime-contract-'));
    const setup = { router: new MemoryRouter(), directory: join(home, 'state'), installation: randomUUID() };
    const folder = join(home, 'source');
    await writeFixture(folder, options.baseImage ?? 'scratch');
    const subject = await makeRuntime(setup);
    const image = subject.image
      ? await subject.image(folder)
      : (await subject.runtime.build!(newBuild(newIdentity(setup.installation), folder), newContext())).image;
    return new Contract(home, setup, subject, folder, image);
  }

  /** Removes every service of the suite; one that can't be removed keeps none of the others from it. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void> | undefined) => {
      await work?.catch((error: unknown) => failures.push(error));
    };
    for (const identity of this.#identities)
      await attempt(this.runtime.remove({ ...identity, generation: 2 ** 40 }, null, newContext()));
    await attempt(this.runtime.close());
    await attempt(this.subject.close?.());
    await rm(this.#home, { recursive: true, force: true });
    if (failures.length > 0) throw new AggregateError(failures, 'Not everything of the contract could be removed.');
  }

  /** A spec of a new service in an environment of its own; the suite removes it at the end. */
  spec(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    const identity = changes.identity ?? newIdentity(this.setup.installation);
    this.#identities.push(identity);
    return newSpec(identity, this.image, { ...changes, identity });
  }

  /** A command of a new service in an environment of its own; the suite removes it at the end. */
  task(steps: TaskStep[], changes: Partial<TaskSpec> = {}): TaskSpec {
    const identity = changes.identity ?? newIdentity(this.setup.installation);
    this.#identities.push(identity);
    return newTask(identity, this.image, steps, { ...changes, identity });
  }

  /** Runs a command to its end; answers that and everything that came into the log. */
  async run(spec: TaskSpec, runtime: Runtime = this.runtime): Promise<{ end: TaskEnd; lines: string[] }> {
    const context = newContext(AbortSignal.timeout((spec.timeoutSeconds + 60) * 1000));
    const end = await runtime.run!(spec, context);
    return { end, lines: context.lines };
  }

  async apply(spec: WorkloadSpec): Promise<Handle> {
    return this.runtime.apply(spec, newContext(AbortSignal.timeout((spec.readyTimeoutSeconds + 60) * 1000)));
  }

  get(spec: WorkloadSpec, path: string): Promise<HttpAnswer> {
    const host = hostOf(spec.identity);
    return this.subject.get ? this.subject.get(host, path) : this.setup.router.get(host, path);
  }

  /** GET that must be answered with 200; the JSON that came. */
  async ask(spec: WorkloadSpec, path: string): Promise<Record<string, unknown>> {
    const { status, body } = await this.get(spec, path);
    expect(status, body).toBe(200);
    return JSON.parse(body);
  }
}

/** A handle as another process would read it from the database. */
export const stored = (handle: Handle): Handle => JSON.parse(JSON.stringify(handle));

/** Asks until the answer is right; fails with the last answer after `timeoutMs`. */
export async function until<T>(ask: () => Promise<T>, isRight: (answer: T) => boolean, timeoutMs = 15_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (isRight(answer)) return answer;
    if (Date.now() > end) expect.fail(`not so within ${timeoutMs} ms, last answer: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Sends requests one after the other, on several lines at once, until stopped; answers how many came back and what failed. */
export function startTraffic(
  send: () => Promise<HttpAnswer>,
  lines = 4,
): () => Promise<{ sent: number; failures: string[] }> {
  let running = true;
  let sent = 0;
  const failures: string[] = [];
  const line = async () => {
    while (running) {
      sent++;
      try {
        const { status, body } = await send();
        if (status !== 200) failures.push(`${status} ${body}`);
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error));
      }
    }
  };
  const all = Promise.all(Array.from({ length: lines }, line));
  return async () => {
    running = false;
    await all;
    return { sent, failures };
  };
}

/** Names of the instances that are ready. */
export const readyNames = (observation: Observation): string[] =>
  observation.instances
    .filter((instance) => instance.state === 'ready')
    .map((instance) => instance.name)
    .sort();
