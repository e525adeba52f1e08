import { existsSync, rmdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { proxyFolder, startProxy, stopProxy } from '#runtimes/host/egress/sandbox-proxy.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { Launcher, type Place } from '#runtimes/host/launch.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import { refusalsOf } from '#runtimes/host/refusals.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { TaskEnds } from '#runtimes/host/task-end.ts';
import { APPEARS_MS, hasState, LOOK_MS, readTask, writeTask } from '#runtimes/host/task-record.ts';
import { readShim, startShim, stopShim } from '#runtimes/tools/shim/index.ts';
import { WholeLog } from '#runtimes/tools/shim/whole-log.ts';
import {
  RuntimeError,
  throwIfCancelled,
  type RuntimeContext,
  type TaskContext,
  type TaskEnd,
  type TaskSpec,
} from '#runtimes/runtime.ts';

/** Grace period for an execution whose starting process was killed before it recorded one. */
const REMOVE_GRACE_MS = 10_000;

/** Runs commands to their end (`Runtime.run`). An execution is an instance whose shim starts it once and records its end. */
export class Tasks {
  readonly #parts: HostParts;
  readonly #launcher: Launcher;
  readonly #ends: TaskEnds;
  readonly #lock = new KeyedLock();

  constructor(parts: HostParts) {
    this.#parts = parts;
    this.#launcher = new Launcher(parts);
    this.#ends = new TaskEnds(parts, this.#launcher);
  }

  async run(spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
    requireGoing(context);
    const place = this.#place(spec);
    await this.#lock.run(place.name, () => this.#begin(place, spec, context));
    await this.#follow(place, spec, context);
    return this.#lock.run(place.name, () => this.#ends.endOf(place, spec, context));
  }

  /** Ends and removes executions of a service (`Runtime.removeTasks`). */
  async remove(serviceId: string, names: string[] | 'all'): Promise<void> {
    const { layout } = this.#parts;
    const present = layout.tasks(serviceId).map((key) => ({ key, directory: layout.task(serviceId, key) }));
    const chosen = present.filter(({ key }) => names === 'all' || names.some((name) => key === keyOf(key, name)));
    await Promise.all(chosen.map(({ key, directory }) => this.#removeOne(nameOf(serviceId, key), directory)));
    for (const { directory } of chosen.slice(0, 1)) removeIfEmpty(dirname(directory), layout.service(serviceId));
  }

  /** Returns the images that running commands of a service use. */
  imagesInUse(serviceId: string): string[] {
    const { layout, bootId } = this.#parts;
    const folders = layout.tasks(serviceId).map((key) => layout.task(serviceId, key));
    return folders.flatMap((folder) => (readShim(folder, bootId)?.running ? (readTask(folder)?.image ?? []) : []));
  }

  #place(spec: TaskSpec): Place {
    const { serviceId, generation } = spec.identity;
    const key = `${generation}-${spec.name}`;
    const directory = this.#parts.layout.task(serviceId, key);
    const folders = spec.outputPath === null ? [] : [dirname(spec.outputPath)];
    return {
      directory,
      name: nameOf(serviceId, key),
      hostname: spec.name.slice(0, 63),
      port: null,
      folders,
      given: spec.folders ?? [],
      isSealed: spec.egress !== undefined,
    };
  }

  /** Starts a command, unless it was started before: its shim has then written its state. */
  async #begin(place: Place, spec: TaskSpec, context: TaskContext): Promise<void> {
    if (await this.#wasBegun(place)) {
      context.log(`${spec.displayName} (${spec.name}) was begun already: it is taken over.`);
      return;
    }
    requireGoing(context);
    const refusals = refusalsOf(spec, this.#parts);
    if (refusals.length > 0) throw new RuntimeError('refused', refusals.join('\n'));
    await this.#removeOne(place.name, place.directory);
    await context.prepare?.();
    try {
      writeTask(place.directory, spec);
      if (!place.isSealed) await this.#parts.network.attach(place.name, { identity: spec.identity, ports: [] }, null);
      const launch = await this.#launcher.prepare(place, spec, context.signal);
      requireGoing(context);
      const once = { timeoutMs: spec.timeoutSeconds * 1000, graceMs: spec.gracePeriodSeconds * 1000 };
      // The proxy starts first and waits for the sandbox, so that no sandbox runs without a proxy.
      await startProxy(this.#parts, place.directory, spec);
      await startShim({ directory: place.directory, once, ...launch });
    } catch (error) {
      if (!hasState(place.directory)) await this.#removeOne(place.name, place.directory);
      throw error;
    }
  }

  async #wasBegun({ directory }: Place): Promise<boolean> {
    if (readTask(directory) === null) return false;
    for (let waited = 0; waited < APPEARS_MS && !hasState(directory); waited += LOOK_MS) await sleep(LOOK_MS);
    return hasState(directory);
  }

  /** Forwards the command's output until it has ended, is lost, or is removed; ends it when the signal is aborted. */
  async #follow({ directory }: Place, spec: TaskSpec, context: RuntimeContext): Promise<void> {
    const { bootId } = this.#parts;
    const logs = [new WholeLog(directory), new WholeLog(proxyFolder(directory))];
    const tell = async () => {
      for (const log of logs) for await (const { text } of log.next()) context.log(text);
    };
    for (;;) {
      const view = readShim(directory, bootId);
      await tell();
      if (!view?.alive || view.state.state === 'stopped') {
        await stopProxy(directory, this.#parts);
        return tell();
      }
      if (context.signal.aborted) {
        await stopShim(directory, spec.gracePeriodSeconds * 1000, bootId);
        requireGoing(context);
      }
      await sleep(LOOK_MS, undefined, { signal: context.signal }).catch(() => undefined);
    }
  }

  async #removeOne(name: string, directory: string): Promise<void> {
    await stopShim(directory, readTask(directory)?.graceMs ?? REMOVE_GRACE_MS, this.#parts.bootId);
    await stopProxy(directory, this.#parts);
    await this.#parts.network.detach(name);
    this.#parts.cgroups.remove(name);
    removeTree(directory);
  }
}

const nameOf = (serviceId: string, key: string): string => `${serviceId}-task-${key}`;

/** Returns the key of the same generation with this name. */
const keyOf = (key: string, name: string): string => `${key.split('-', 1)[0]}-${name}`;

function removeIfEmpty(...folders: string[]): void {
  for (const folder of folders) {
    try {
      if (existsSync(folder)) rmdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    }
  }
}

function requireGoing(context: RuntimeContext): void {
  throwIfCancelled(context.signal);
}
