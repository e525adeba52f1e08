import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { FileLimits, Question, Reply } from '#kernel/parsing/formats.ts';

/** Reason for which a file is not read: a fault in it, a limit that it exceeds, or that too many wait. */
export type RefusalKind = 'fault' | 'limit' | 'busy';

export class Refusal extends Error {
  readonly kind: RefusalKind;
  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Two, so that a file that takes all of its time leaves one for others. More where the machine has processors to spare. */
const MAX_THREADS = Math.max(2, Math.min(4, Math.floor(availableParallelism() / 2)));
/** Files of one owner that wait. More are refused: their texts are in memory. */
const MAX_WAITING = 64;
/** Milliseconds after which an idle thread ends: a parser's code and memory take some 50 MB. */
const IDLE_MS = 30_000;

interface Job {
  question: Question;
  limits: FileLimits;
  signal: AbortSignal | undefined;
  resolve(result: unknown): void;
  reject(error: unknown): void;
  /** Takes the job out of its row. */
  leave(): void;
}

/** Program of the threads: TypeScript in a checkout, JavaScript where the program was compiled. */
const PROGRAM = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url);

/** Threads that read files. An owner has one of them at a time, and owners take turns. */
export class ParserPool {
  readonly #threads = new Set<ParserThread>();
  /** Owners in the order of their turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #busy = new Set<string>();
  readonly #program: URL;
  readonly #mostThreads: number;

  constructor(program = PROGRAM, mostThreads = MAX_THREADS) {
    this.#program = program;
    this.#mostThreads = mostThreads;
  }

  /** Reads a file in its turn. The abort of the signal takes it out of its row, or ends its thread. */
  run<T>(owner: string, question: Question, limits: FileLimits, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const jobs = this.#waiting.get(owner) ?? [];
      if (jobs.length >= MAX_WAITING)
        return reject(
          new Refusal('busy', `${MAX_WAITING} files of your organization wait to be read: try again in 5 s`),
        );
      const leave = () => this.#leave(owner, job, signal?.reason);
      const job: Job = { question, limits, signal, resolve: resolve as (result: unknown) => void, reject, leave };
      jobs.push(job);
      this.#waiting.set(owner, jobs);
      signal?.addEventListener('abort', leave, { once: true });
      this.#next();
    });
  }

  #leave(owner: string, job: Job, reason: unknown): void {
    const jobs = this.#waiting.get(owner);
    const at = jobs?.indexOf(job) ?? -1;
    if (!jobs || at < 0) return;
    jobs.splice(at, 1);
    if (jobs.length === 0) this.#waiting.delete(owner);
    job.reject(reason);
  }

  #next(): void {
    for (const [owner, jobs] of this.#waiting) {
      if (this.#busy.size === this.#mostThreads) return;
      if (this.#busy.has(owner)) continue;
      const job = jobs.shift()!;
      // Behind all others, if it has more.
      this.#waiting.delete(owner);
      if (jobs.length > 0) this.#waiting.set(owner, jobs);
      void this.#do(owner, job);
    }
  }

  async #do(owner: string, { question, limits, signal, resolve, reject, leave }: Job): Promise<void> {
    this.#busy.add(owner);
    signal?.removeEventListener('abort', leave);
    try {
      resolve(await this.#read(question, limits, signal));
    } catch (error) {
      reject(error);
    } finally {
      this.#busy.delete(owner);
      this.#next();
    }
  }

  /** Rejects where no thread can be made, too: the owner's place is free again then. */
  async #read(question: Question, limits: FileLimits, signal: AbortSignal | undefined): Promise<unknown> {
    const thread = this.#threadFor(limits);
    const end = () => thread.end(signal?.reason);
    signal?.addEventListener('abort', end, { once: true });
    try {
      return await thread.read(question, limits);
    } finally {
      signal?.removeEventListener('abort', end);
    }
  }

  /** Returns an idle thread with that much memory, else a new one. */
  #threadFor({ megabytes }: FileLimits): ParserThread {
    for (const thread of this.#threads) if (thread.isIdle && thread.megabytes === megabytes) return thread;
    const thread = new ParserThread(this.#program, megabytes, () => this.#threads.delete(thread));
    this.#threads.add(thread);
    return thread;
  }
}

/** Parser thread that is ended as soon as a file was too much for it. */
class ParserThread {
  readonly megabytes: number;
  readonly #worker: Worker;
  readonly #onEnd: () => void;
  #reading: { resolve(result: unknown): void; reject(error: unknown): void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(program: URL, megabytes: number, onEnd: () => void) {
    this.megabytes = megabytes;
    this.#onEnd = onEnd;
    // Nothing of this process is passed on, because the thread reads files of users.
    this.#worker = new Worker(program, {
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: megabytes },
    });
    this.#worker.on('message', (reply: Reply) => this.#answered(reply));
    this.#worker.on('error', (error) => this.#failed(error));
    this.#worker.on('exit', () => this.#failed(new Error('The thread that reads files has ended.')));
  }

  get isIdle(): boolean {
    return !this.#ended && this.#reading === undefined;
  }

  read(question: Question, { milliseconds }: FileLimits): Promise<unknown> {
    clearTimeout(this.#timer);
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#reading = { resolve, reject };
      this.#timer = setTimeout(
        () => this.end(new Refusal('limit', `it takes longer than ${milliseconds / 1000} s to read`)),
        milliseconds,
      );
      this.#worker.postMessage(question);
    });
  }

  #answered(reply: Reply): void {
    // An answer that was on its way when its time was over.
    if (!this.#reading) return;
    clearTimeout(this.#timer);
    const { resolve, reject } = this.#reading;
    if ('broken' in reply && reply.broken) return this.end(new Refusal('limit', reply.problem));
    this.#reading = undefined;
    this.#timer = setTimeout(() => this.end(), IDLE_MS).unref();
    // The process may end while the thread has nothing to do.
    this.#worker.unref();
    if ('problem' in reply) reject(new Refusal(reply.kind, reply.problem));
    else resolve('json' in reply ? (JSON.parse(reply.json) as unknown) : reply.result);
  }

  #failed(error: unknown): void {
    const isMemory = (error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY';
    this.end(isMemory ? new Refusal('limit', `it takes more than ${this.megabytes} MB of memory to read`) : error);
  }

  /** Ends the thread; what it reads is rejected with the reason. */
  end(reason?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#onEnd();
    this.#reading?.reject(reason);
    this.#reading = undefined;
    void this.#worker.terminate();
  }
}
