import { appendFileSync } from 'node:fs';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJson } from '#kernel/private-files.ts';
import { RuntimeError, cancelled } from '#runtimes/runtime.ts';
import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import type { FakeOutcome } from '#runtimes/fake/outcome.ts';

export type FakeVerb =
  | 'check'
  | 'list'
  | 'submit'
  | 'progress'
  | 'observe'
  | 'stop'
  | 'restart'
  | 'remove'
  | 'logs'
  | 'build'
  | 'diff'
  | 'chartServices'
  | 'endpoints'
  | 'metrics'
  | 'run'
  /** Moment after an execution has begun and before it reports anything; no separate verb. */
  | 'begun'
  | 'removeTasks'
  | 'hasImage'
  | 'removeImages'
  | 'removeEnvironment'
  | 'diskUse'
  | 'replaceInstance'
  | 'trimCaches';

/** Faults of the fake runtime. Numbers of calls count from 1, per verb and runtime object; they can be changed between calls. */
export interface FakeFaults {
  /** Milliseconds by which each call of a verb is delayed. */
  delayMs?: Partial<Record<FakeVerb, number>>;
  /** Number of the call that throws RuntimeError: `failed`, or the given error. */
  failAt?: Partial<Record<FakeVerb, number | { call: number; error: Error }>>;
  /** Number of the call that hangs until its signal is aborted (for ever, if the verb has none). */
  hangAt?: Partial<Record<FakeVerb, number>>;
  /** Verbs whose calls hang while they are listed here, even after an abort: an engine that does not answer. */
  deaf?: FakeVerb[];
  /** Number of the call in which the whole process ends with status 137, as if killed. */
  dieAt?: Partial<Record<FakeVerb, number>>;
  /** Outcomes of executions, by the service's id or `*` for all; `FakeRuntime.onTask` takes precedence. */
  outcomes?: Record<string, FakeOutcome>;
  /** File to which each call that passes is appended, as a JSON line with the pid: the order of calls of several processes. */
  journal?: string;
}

/** Call that the fake received, for tests. */
export interface FakeCall {
  verb: FakeVerb;
  serviceId: string | null;
  generation: number | null;
}

/** Throws RuntimeError `aborted` if the signal is. */
export function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(signal.reason);
}

/** Waits; throws RuntimeError `aborted` as soon as the signal is aborted. */
export async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  assertNotAborted(signal);
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    assertNotAborted(signal);
    throw error;
  });
}

/** Milliseconds between two checks whether calls still hang. */
const DEAF_LOOK_MS = 50;

/** Number of calls kept for inspection: a control plane on the fake runtime runs for weeks. */
const KEPT_CALLS = 1000;

/** Counts calls and applies the faults set for them. */
export class FaultPlan {
  /** Most recent calls, oldest first. */
  readonly calls: FakeCall[] = [];
  readonly #counts = new Map<FakeVerb, number>();
  readonly #file: string | undefined;
  #faults: FakeFaults;

  /** `file` may hold further faults in JSON, for processes that already run: it is read at each call. */
  constructor(faults: FakeFaults, file?: string) {
    this.#faults = faults;
    this.#file = file;
  }

  get faults(): FakeFaults {
    return this.#file === undefined ? this.#faults : { ...this.#faults, ...readJson<FakeFaults>(this.#file) };
  }

  set faults(faults: FakeFaults) {
    this.#faults = faults;
  }

  /** Applies the faults of a call; awaited at the start of each verb. */
  async enter(verb: FakeVerb, identity: Partial<WorkloadIdentity> | null, signal?: AbortSignal): Promise<void> {
    this.calls.push({ verb, serviceId: identity?.serviceId ?? null, generation: identity?.generation ?? null });
    if (this.calls.length > 2 * KEPT_CALLS) this.calls.splice(0, KEPT_CALLS);
    const call = (this.#counts.get(verb) ?? 0) + 1;
    this.#counts.set(verb, call);
    assertNotAborted(signal);
    const { delayMs, dieAt, hangAt, failAt, journal } = this.faults;
    const delay = delayMs?.[verb];
    if (delay) await wait(delay, signal);
    if (dieAt?.[verb] === call) process.exit(137);
    if (hangAt?.[verb] === call) await hang(signal);
    while (this.faults.deaf?.includes(verb)) await sleep(DEAF_LOOK_MS);
    assertNotAborted(signal);
    const fail = failAt?.[verb];
    const failing = typeof fail === 'number' ? { call: fail, error: null } : fail;
    if (failing?.call === call)
      throw (
        failing.error ?? new RuntimeError('failed', `The fake runtime was told to fail at call ${call} of ${verb}.`)
      );
    if (journal !== undefined) appendFileSync(journal, `${JSON.stringify({ pid: process.pid, verb, ...identity })}\n`);
  }
}

/** Waits for the end of the signal; for ever without one, and without a timer that would keep the process from its end. */
async function hang(signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return new Promise<never>(() => undefined);
  if (!signal.aborted) await once(signal, 'abort');
}
