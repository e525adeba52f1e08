import { anySignal } from '#kernel/lease-signal.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Probe } from '#runtimes/runtime.ts';
import type { Endpoints } from './container-config.ts';
import { engineMessage, unless } from './errors.ts';
import { LABEL } from './labels.ts';
import { checkInstance } from './readiness.ts';
import { findContainers } from './search.ts';

/** Milliseconds between two lists of the containers to watch. */
const LOOK_MS = 1000;

/** Watched container, as far as a list tells. */
interface Watched {
  id: string;
  name: string;
  endpoints: Endpoints;
  probe: Probe;
  graceSeconds: number;
}

const toWatched = ({ Id: id, Names: names, Labels: labels }: Docker.ContainerInfo): Watched => ({
  id,
  name: names[0]!.slice(1),
  endpoints: JSON.parse(labels[LABEL.endpoints]!) as Endpoints,
  probe: JSON.parse(labels[LABEL.liveness]!) as Probe,
  graceSeconds: Number(labels[LABEL.grace]),
});

/**
 * Watches the liveness probes of an installation's containers and restarts those that fail. The engine itself restarts ended containers but
 * not hanging ones (its own health checks only mark them). The labels of the containers hold everything needed, so the watch runs without
 * the control plane, in a separate process (liveness-program.ts).
 */
export class LivenessWatch {
  readonly #engine: Docker;
  readonly #installation: string;
  readonly #log: (line: string) => void;
  readonly #watched = new Map<string, AbortController>();

  constructor(engine: Docker, installation: string, log: (line: string) => void) {
    this.#engine = engine;
    this.#installation = installation;
    this.#log = log;
  }

  /** Watches until the signal is aborted; an engine that doesn't answer is asked again. */
  async run(signal: AbortSignal): Promise<void> {
    for (let reachable = true; !signal.aborted;) {
      try {
        await this.#look(signal);
        reachable = true;
      } catch (error) {
        if (reachable) this.#log(`The container engine does not answer: ${engineMessage(error)}`);
        reachable = false;
      }
      await sleep(LOOK_MS, undefined, { signal }).catch(ignoreAbort);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const place = { engine: this.#engine, installation: this.#installation };
    const containers = (await findContainers(place)).filter(
      (one) => one.State === 'running' && one.Labels[LABEL.liveness] !== undefined,
    );
    const present = new Set(containers.map((container) => container.Id));
    for (const [id, watching] of this.#watched) if (!present.has(id)) watching.abort();
    for (const container of containers) if (!this.#watched.has(container.Id)) this.#begin(toWatched(container), signal);
  }

  #begin(instance: Watched, signal: AbortSignal): void {
    const own = new AbortController();
    this.#watched.set(instance.id, own);
    this.#watch(instance, anySignal([signal, own.signal]))
      .catch((error: unknown) => this.#log(`${instance.name}: ${engineMessage(error)}`))
      .finally(() => this.#watched.delete(instance.id));
  }

  /** Checks one instance as Kubernetes does: `failureThreshold` failures in a row end it. */
  async #watch(instance: Watched, signal: AbortSignal): Promise<void> {
    const { probe } = instance;
    await sleep(probe.initialDelaySeconds * 1000, undefined, { signal }).catch(ignoreAbort);
    for (let failures = 0; !signal.aborted;) {
      const why = await checkInstance(this.#engine, instance, probe.check, probe.timeoutSeconds);
      failures = why === null ? 0 : failures + 1;
      if (failures >= Math.max(probe.failureThreshold, 1)) return this.#restart(instance, why!, signal);
      await sleep(probe.periodSeconds * 1000, undefined, { signal }).catch(ignoreAbort);
    }
  }

  async #restart(instance: Watched, why: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const container = this.#engine.getContainer(instance.id);
    const inspected = await unless([404], container.inspect());
    if (!inspected?.State.Running) return;
    this.#log(`${instance.name} is restarted, its liveness check fails: ${why}`);
    await unless([404], container.restart({ t: instance.graceSeconds }));
  }
}

function ignoreAbort(error: Error): void {
  if (error.name !== 'AbortError') throw error;
}
