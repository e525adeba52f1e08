import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import type {
  Handle,
  Observation,
  Runtime,
  RuntimeContext,
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

/** Objects that the suite gives to a runtime. */
export interface ContractSetup {
  /** Router for the runtime's routes; the suite's requests go to the upstreams that it holds. */
  router: MemoryRouter;
  /** An empty folder for the runtime's state, removed at the end. */
  directory: string;
  /** Installation of every identity that the suite uses. */
  installation: string;
}

/** Runtime under test, with the functions that the suite needs. */
export interface ContractSubject {
  runtime: Runtime;
  /** Builds an image of the folder, which has a Dockerfile. If absent, the suite calls the runtime's own `build`. */
  image?(folder: string): Promise<string>;
  /** Sends a GET for a host name. If absent, the request goes to the upstreams that the runtime gave to the router. */
  get?(host: string, path: string): Promise<HttpAnswer>;
  /** Returns the names of all remains of a service: processes, containers, networks, folders, volumes. */
  leftovers(identity: WorkloadIdentity): Promise<string[]>;
  /** Opens a second runtime object that knows only what a second process would know. The suite closes it. */
  reopen(): Promise<Runtime>;
  /** Removes the test's setup around the runtime, after `runtime.close()`. */
  close?(): Promise<void>;
}

/** Guarantee that not every runtime gives. */
type OptionalGuarantee =
  | 'siblings'
  | 'storage'
  | 'absolutePaths'
  | 'programs'
  | 'egress'
  | 'tasks'
  /** Output files of commands may have 1 MiB. */
  | 'largeOutputs'
  | 'builds'
  | 'disk'
  /** Origin of each line of a log, standard output or error. */
  | 'streams'
  /** Names within an environment lead to a new release at the end of its rollout, not a moment later. */
  | 'namesAtOnce'
  /** A cancelled program beside a workload is ended. */
  | 'endOfPrograms';

export interface ContractOptions {
  /** FROM of the fixture's Dockerfile: an image with `node` on its PATH. */
  baseImage?: string;
  /** Milliseconds for one test. */
  timeoutMs?: number;
  /** True if services of earlier tests would leave no room: each test's are removed behind it. */
  isSmall?: boolean;
  /** Guarantees that this runtime does not give, with the reason. */
  without?: Partial<Record<OptionalGuarantee, string>>;
}

/**
 * Returns a folder for files and storage, and the application's name for it. A runtime without absolute paths has only folders below the
 * WORKDIR.
 */
export const mountFolder = (options: ContractOptions): { mount: string; named: string } =>
  options.without?.absolutePaths
    ? { mount: '/app/contract', named: 'contract' }
    : { mount: '/srv/contract', named: '/srv/contract' };

export type MakeRuntime = (setup: ContractSetup) => Promise<ContractSubject>;

/** Returns the state of the suite; for a test, which may run beside others, with services of its own. */
export type ContractOf = (test?: TestContext) => Contract;

/** State that the groups of the suite share: the runtime, its fixture and its services. */
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

  /** Returns the same with services of its own, which it removes by `clear`. */
  forTest(): Contract {
    return new Contract(this.#home, this.setup, this.subject, this.folder, this.image);
  }

  /** Removes every service that was made so far. Where a cluster ends instances by itself, some are waited for at a time. */
  async clear(): Promise<void> {
    const left = this.#identities.splice(0).values();
    const removeRest = async () => {
      for (const identity of left) await this.runtime.remove({ ...identity, generation: 2 ** 40 }, null, newContext());
    };
    await Promise.all(Array.from({ length: this.runtime.progress ? 8 : 3 }, removeRest));
  }

  /** Removes every service of the suite. A failed removal does not prevent the others. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    const attempt = async (work: Promise<void> | undefined) => {
      await work?.catch((error: unknown) => failures.push(error));
    };
    while (this.#identities.length > 0) await attempt(this.clear());
    await attempt(this.runtime.close());
    await attempt(this.subject.close?.());
    await rm(this.#home, { recursive: true, force: true });
    if (failures.length > 0) throw new AggregateError(failures, 'Not everything of the contract could be removed.');
  }

  /** Returns a spec of a new service in its own environment; the suite removes it at the end. */
  spec(changes: Partial<WorkloadSpec> = {}): WorkloadSpec {
    const identity = changes.identity ?? newIdentity(this.setup.installation);
    this.#identities.push(identity);
    return newSpec(identity, this.image, { ...changes, identity });
  }

  /** Returns a command of a new service in its own environment; the suite removes it at the end. */
  task(steps: TaskStep[], changes: Partial<TaskSpec> = {}): TaskSpec {
    const identity = changes.identity ?? newIdentity(this.setup.installation);
    this.#identities.push(identity);
    return newTask(identity, this.image, steps, { ...changes, identity });
  }

  /** Runs a command to its end; returns the end and all log lines. */
  async run(spec: TaskSpec, runtime: Runtime = this.runtime): Promise<{ end: TaskEnd; lines: string[] }> {
    const context = newContext(AbortSignal.timeout((spec.timeoutSeconds + 60) * 1000));
    const end = await runtime.run!(spec, context);
    return { end, lines: context.lines };
  }

  /** Applies a spec and waits until it is rolled out. */
  apply(spec: WorkloadSpec, context = newContext(AbortSignal.timeout((spec.readyTimeoutSeconds + 60) * 1000))) {
    return applyOn(this.runtime, spec, context);
  }

  /** Restarts a release for a deployment and waits until it is rolled out. */
  async restart(handle: Handle, asked: number): Promise<Handle> {
    const restarted = await this.runtime.restart(handle, asked, newContext());
    await this.runtime.progress?.(restarted, newContext());
    return restarted;
  }

  /** Returns what is observed of a release once it runs: the probe of one look may take too long on a busy machine. */
  running(handle: Handle): Promise<Observation> {
    return until(
      () => this.runtime.observe(handle),
      ({ state }) => state === 'running',
    );
  }

  get(spec: WorkloadSpec, path: string): Promise<HttpAnswer> {
    const host = hostOf(spec.identity);
    return this.subject.get ? this.subject.get(host, path) : this.setup.router.get(host, path);
  }

  /** Sends a GET that must return 200; returns the JSON of the answer. */
  async ask(spec: WorkloadSpec, path: string): Promise<Record<string, unknown>> {
    const { status, body } = await this.get(spec, path);
    expect(status, body).toBe(200);
    return JSON.parse(body);
  }

  /** Repeats a GET until it returns 200, as after a restart: a route may follow a moment after its instance is ready. */
  async served(spec: WorkloadSpec, path = '/'): Promise<Record<string, unknown>> {
    const { body } = await until(
      () => this.get(spec, path),
      ({ status }) => status === 200,
    );
    return JSON.parse(body);
  }
}

/** Applies a spec on a runtime and waits until it is rolled out. */
export async function applyOn(runtime: Runtime, spec: WorkloadSpec, context: RuntimeContext): Promise<Handle> {
  const handle = await runtime.submit(spec, context);
  await runtime.progress?.(handle, context);
  return handle;
}

/** Returns a handle as another process would read it from the database. */
export const stored = (handle: Handle): Handle => JSON.parse(JSON.stringify(handle));

/** Repeats `ask` until the answer is right; fails with the last answer after `timeoutMs`. */
export async function until<T>(ask: () => Promise<T>, isRight: (answer: T) => boolean, timeoutMs = 40_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (isRight(answer)) return answer;
    if (Date.now() > end) expect.fail(`not so within ${timeoutMs} ms, last answer: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Sends requests one after the other, on several connections at once, until stopped; returns the number of answers and the failures. */
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

/** Returns the names of the ready instances. */
export const readyNames = (observation: Observation): string[] =>
  observation.instances
    .filter((instance) => instance.state === 'ready')
    .map((instance) => instance.name)
    .sort();
