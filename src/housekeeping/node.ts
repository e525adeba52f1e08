import path from 'node:path';
import type { Registry } from 'prom-client';
import { collectCheckouts } from '#housekeeping/checkouts.ts';
import { Collector } from '#housekeeping/collector.ts';
import { DiskGuard, type DiskGuardParts } from '#housekeeping/disk-guard.ts';
import { listReleasedImages } from '#housekeeping/disk-queries.ts';
import { NodeDisks, type DiskFolder } from '#housekeeping/node-disks.ts';
import { createDiskGauges, measureDisk, type DiskGauges, type FolderSize } from '#housekeeping/disk-use.ts';
import { anySignal } from '#kernel/lease-signal.ts';
import { runtimesOfMachine } from '#housekeeping/machine-runtimes.ts';
import { forgetLostImages } from '#housekeeping/lost-images.ts';
import { trimReleasesOfNode } from '#housekeeping/retention.ts';
import { trimServerLog } from '#housekeeping/server-log.ts';
import type { Platform } from '#platform/context.ts';
import type { ClusterRuntimes, MachineRuntimes, Runtime } from '#runtimes/runtime.ts';

const ROUND_MS = 10 * 60_000;
/** Milliseconds until the first round, which waits until the start is over. */
const FIRST_MS = 60_000;
/** Releases that one round removes if images take too much. The next round measures the effect. */
const TOO_MANY = 20;
/** Milliseconds that a runtime has to trim its caches. */
const TRIM_MS = 180_000;
/** Seconds that a pulled image stays although nothing needs it: a deployment may be about to. */
const PULLED_SECONDS = 24 * 3600;
const MIB = 2 ** 20;

export interface HousekeepingParts extends Pick<DiskGuardParts, 'checkoutMeter' | 'kinds' | 'stopService'> {
  platform: Platform;
  runtimes: ClusterRuntimes & MachineRuntimes;
  nodeId: string;
  installation: { id: string; epoch: number };
  /** Registry that the gauges of the disk use are added to after the first measurement. */
  registry: Registry;
  folderBytes: FolderSize;
  /** Removes the work of processes that are gone in a folder. */
  removeAbandoned(folder: string): void;
}

/** Removes leftovers on this machine: resources with a tombstone and incomplete work of killed processes. Measures the disk use. */
export class NodeHousekeeping {
  readonly #parts: HousekeepingParts;
  readonly #collector: Collector;
  readonly #guard: DiskGuard;
  readonly #disks: NodeDisks;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #gauges: DiskGauges | undefined;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
    this.#collector = new Collector(parts);
    this.#guard = new DiskGuard(parts);
    this.#disks = new NodeDisks({ platform: parts.platform, nodeId: parts.nodeId, folders: () => this.#folders() });
  }

  start(): void {
    this.#collector.start();
    this.#guard.start();
    this.#disks.start();
    this.#timer = setTimeout(() => this.#next(), FIRST_MS).unref();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    clearTimeout(this.#timer);
    await Promise.all([this.#collector.stop(), this.#guard.stop(), this.#disks.stop(), this.#round]);
  }

  /** Returns the folders whose disks can fill. That of an engine is known once its use was measured. */
  #folders(): DiskFolder[] {
    const storage = this.#guard.uses.find((use) => use.storage !== undefined)?.storage;
    return [
      { holds: 'DATA', folder: this.#parts.platform.settings.dataDir },
      ...(storage === undefined ? [] : [{ holds: 'ENGINE' as const, folder: storage }]),
    ];
  }

  /** Runs a round now, or joins the round that is under way. */
  round(): Promise<void> {
    return (this.#round ??= this.#goRound()
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.#parts.platform.log.warn({ err: error }, 'cannot look after the disk');
      })
      .finally(() => (this.#round = undefined)));
  }

  #next(): void {
    void this.round().then(() => {
      if (!this.#abort.signal.aborted) this.#timer = setTimeout(() => this.#next(), ROUND_MS).unref();
    });
  }

  async #goRound(): Promise<void> {
    const { platform, registry, folderBytes } = this.#parts;
    const { dataDir } = platform.settings;
    trimServerLog(path.join(dataDir, 'postgres', 'postgres.log'));
    await collectCheckouts(platform.db, path.join(dataDir, 'checkouts'));
    this.#parts.removeAbandoned(path.join(dataDir, 'git'));
    const runtimes = await runtimesOfMachine(platform, this.#parts.runtimes, this.#parts.nodeId);
    for (const runtime of runtimes) await this.#removeBroken(runtime);
    await forgetLostImages(this.#parts, runtimes, this.#abort.signal);
    this.#gauges ??= createDiskGauges(registry);
    await this.#guard.round();
    const { images } = await measureDisk(platform, this.#guard.uses, this.#gauges, folderBytes, this.#abort.signal);
    await this.#keepLimit(images);
    for (const runtime of runtimes) await this.#trimCaches(runtime, images);
  }

  /** Lets a runtime remove and finish the work of killed processes. An error is logged and keeps nothing else from being looked after. */
  async #removeBroken(runtime: Runtime): Promise<void> {
    const { log } = this.#parts.platform;
    await runtime
      .removeBroken?.()
      .catch((error: unknown) => log.warn({ err: error, runtime: runtime.name }, 'cannot finish interrupted work'));
  }

  /**
   * Trims the caches of a runtime to their limits. If images take too much, pulled images of releases are removed too: they can be pulled
   * again.
   */
  async #trimCaches(runtime: Runtime, images: number): Promise<void> {
    if (!runtime.trimCaches) return;
    const { platform, nodeId } = this.#parts;
    const { buildCacheLimitMb, imageLimitMb } = platform.settings;
    const isTooMuch = imageLimitMb > 0 && images > imageLimitMb * MIB;
    const limits = {
      buildCacheBytes: buildCacheLimitMb === 0 ? null : buildCacheLimitMb * MIB,
      keptImages: isTooMuch ? [] : await listReleasedImages(platform.db, nodeId),
      pulledSeconds: PULLED_SECONDS,
    };
    const signal = anySignal([this.#abort.signal, AbortSignal.timeout(TRIM_MS)]);
    try {
      for (const line of await runtime.trimCaches(limits, signal)) platform.log.info({ runtime: runtime.name }, line);
    } catch (error) {
      if (!this.#abort.signal.aborted)
        platform.log.warn({ err: error, runtime: runtime.name }, 'cannot trim the caches of a runtime');
    }
  }

  async #keepLimit(images: number): Promise<void> {
    const { platform, nodeId } = this.#parts;
    const { imageLimitMb, keptReleases } = platform.settings;
    if (imageLimitMb === 0 || images <= imageLimitMb * 2 ** 20) return;
    const gone = await trimReleasesOfNode(platform.db, { kept: keptReleases, nodeId, count: TOO_MANY });
    platform.log.info({ images, gone }, 'images take more than their limit: releases beyond the kept ones go early');
  }
}
