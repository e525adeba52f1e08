import {
  findPresent,
  noteFailure,
  postpone,
  removeTombstone,
  takeTombstones,
  type Tombstone,
} from '#housekeeping/tombstones.ts';
import { withDeadline } from '#kernel/deadline.ts';
import { generationOf } from '#deployments/index.ts';
import type { Platform } from '#platform/context.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import { Periodic } from '#platform/work/periodic.ts';
import type { ClusterRuntimes, Runtime, WorkloadIdentity } from '#runtimes/runtime.ts';

const LOOK_MS = 30_000;
const BATCH = 20;
/** Longer than a lease: what a worker that lost its claim still makes is there by then (docs/contributing/engine.md, *The queue*). */
const GRACE_SECONDS = 20;
/** Seconds until one is looked at again that has to wait for something else to end. */
const LATER = 60;
/** Seconds that the removal of one thing may take. */
const DEADLINE_SECONDS = 120;
/** Seconds that one has to come back after it was told to end: it is tried again in any case. */
const PATIENCE_SECONDS = 2;

export interface CollectorParts {
  platform: Platform;
  runtimes: ClusterRuntimes;
  nodeId: string;
  installation: { id: string; epoch: number };
  /** Seconds that a tombstone rests before it is worked off; longer than a lease without. */
  graceSeconds?: number;
  /** Seconds that the removal of one thing may take; 120 without. */
  deadlineSeconds?: number;
}

/**
 * Removes what is left on this machine of services, releases and environments that are gone. It acts on tombstones alone: what is there
 * and unknown is left alone, since a restored database is older than the world (docs/contributing/architecture.md, *Data*).
 */
export class Collector {
  readonly #parts: CollectorParts;
  readonly #abort = new AbortController();
  readonly #passes: Periodic;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    const warn = (error: unknown) => {
      // A restored installation is looked at by people before anything is removed: the database refuses the claim.
      if ((error as { code?: string }).code !== READ_ONLY_CODE)
        parts.platform.log.warn({ err: error }, 'cannot collect what is left over');
    };
    this.#passes = new Periodic(LOOK_MS, () => this.#collectAll(), warn);
  }

  start(): void {
    this.#passes.start();
  }

  stop(): Promise<void> {
    this.#abort.abort();
    return this.#passes.stop();
  }

  /** Works off what is due; a pass that is under way already is joined. */
  collect(): Promise<void> {
    return this.#passes.look();
  }

  async #collectAll(): Promise<void> {
    const { platform, nodeId, graceSeconds = GRACE_SECONDS } = this.#parts;
    while (!this.#abort.signal.aborted) {
      const taken = await takeTombstones(platform.db, { nodeId, graceSeconds, limit: BATCH });
      for (const tombstone of taken) {
        if (this.#abort.signal.aborted) return;
        await this.#tryOne(tombstone);
      }
      if (taken.length < BATCH) return;
    }
  }

  async #tryOne(tombstone: Tombstone): Promise<void> {
    const { db, log } = this.#parts.platform;
    try {
      if (await this.#inTime(tombstone)) await removeTombstone(db, tombstone.id);
      else await postpone(db, tombstone.id, LATER);
    } catch (error) {
      const message = (error as Error).message;
      log.warn({ err: error, tombstone }, 'cannot remove what is left over; it is tried again');
      await noteFailure(db, tombstone.id, message);
    }
  }

  /** Works one off. A runtime that does not answer holds up neither the others nor the end of the process. */
  #inTime(tombstone: Tombstone): Promise<boolean> {
    const { deadlineSeconds: seconds = DEADLINE_SECONDS } = this.#parts;
    const late = (cause: unknown) =>
      new Error(`The runtime ${tombstone.runtime} did not remove it within ${seconds} s.`, { cause });
    const options = { seconds, patience: () => PATIENCE_SECONDS, late };
    return withDeadline(this.#abort.signal, options, ({ signal }) => this.#workOff(tombstone, signal));
  }

  /** Answers whether nothing is left of what it names; false if something has to end first. Throws why it can't be removed. */
  async #workOff(tombstone: Tombstone, signal: AbortSignal): Promise<boolean> {
    const present = await findPresent(this.#parts.platform.db, tombstone);
    switch (tombstone.kind) {
      case 'SERVICE': {
        if (present.service) return true;
        if (present.environmentBusy) return false;
        const runtime = await this.#runtimeOf(tombstone);
        const identity = this.#identityOf(tombstone);
        await runtime.remove(identity, null, this.#context(tombstone, signal));
        await runtime.removeImages?.(identity, 'all');
        return true;
      }
      case 'IMAGE': {
        // Its service's own tombstone covers it, or it has been released again since.
        if (!present.service || present.released) return true;
        if (present.busy) return false;
        await (await this.#runtimeOf(tombstone)).removeImages?.(this.#identityOf(tombstone), [tombstone.image!]);
        return true;
      }
      case 'ENVIRONMENT': {
        if (present.environment) return true;
        if (present.siblings) return false;
        await (await this.#runtimeOf(tombstone)).removeEnvironment?.(this.#identityOf(tombstone));
        return true;
      }
    }
  }

  /** A runtime that is there but can't be used now throws as one that isn't there does: the tombstone waits. */
  async #runtimeOf(tombstone: Tombstone): Promise<Runtime> {
    return this.#parts.runtimes.runtimeOf({ id: tombstone.cluster_id, runtime: tombstone.runtime });
  }

  #identityOf(tombstone: Tombstone): WorkloadIdentity {
    const { installation } = this.#parts;
    return {
      installation: installation.id,
      organizationId: tombstone.organization_id,
      projectId: tombstone.project_id,
      environmentId: tombstone.environment_id,
      serviceId: tombstone.service_id ?? tombstone.environment_id,
      generation: generationOf(installation.epoch, tombstone.number),
    };
  }

  #context(tombstone: Tombstone, signal: AbortSignal) {
    const { log } = this.#parts.platform;
    return {
      signal,
      log: (text: string) => log.debug({ serviceId: tombstone.service_id }, text),
    };
  }
}
