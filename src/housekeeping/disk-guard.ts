import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Counter, type Gauge, type Registry } from 'prom-client';
import { renewGauge } from '#platform/telemetry/gauges.ts';
import { act, type ActedService, type StopService } from '#housekeeping/disk-acts.ts';
import {
  dropWarnings,
  listMeasured,
  organizationsOfDeployments,
  saveDiskUse,
  type MeasuredService,
} from '#housekeeping/disk-queries.ts';
import { addTo, judge, totalsOf, type DiskTotals, type Verdict } from '#housekeeping/disk-rules.ts';
import { runtimesOfMachine } from '#housekeeping/machine-runtimes.ts';
import { withDeadline } from '#kernel/deadline.ts';
import type { DeployableKind, DiskWarning } from '#deployments/index.ts';
import type { Platform } from '#platform/context.ts';
import { READ_ONLY_CODE } from '#platform/installation/index.ts';
import type { DiskUse, Runtime, MachineRuntimes } from '#runtimes/runtime.ts';

/**
 * Least pause between two rounds. The pause is at least `REST` times as long as the round before, so that measuring takes a tenth of the
 * time.
 */
const LEAST_PAUSE_MS = 30_000;
const REST = 9;
const GIB = 2 ** 30;
/** Seconds that a runtime has to measure what it holds. */
const MEASURE_SECONDS = 300;

/** Measures folders. A folder that is not reached in time keeps its last figure. */
interface FolderMeter {
  measure(
    folders: readonly { key: string; paths: string[] }[],
    signal: AbortSignal,
  ): Promise<Map<string, { bytes: number; files: number; isWhole: boolean }>>;
}

export interface DiskGuardParts {
  checkoutMeter: FolderMeter;
  kinds: Record<string, Pick<DeployableKind, 'volumes'>>;
  stopService: StopService;
  platform: Platform;
  runtimes: MachineRuntimes;
  nodeId: string;
  installation: { id: string };
  registry: Registry;
}

const VOLUME_STATES: Partial<Record<DiskWarning, string>> = {
  VOLUME_NEARLY_FULL: 'nearly_full',
  VOLUME_FULL: 'full',
  VOLUME_LIMIT: 'limit',
};

/**
 * Measures the disk use of services on this machine repeatedly and enforces their limits
 * (docs/decisions/0060-disk-is-measured-and-held.md).
 */
export class DiskGuard {
  readonly #parts: DiskGuardParts;
  readonly #abort = new AbortController();
  /** Last measurement by runtime. */
  readonly #uses = new Map<Runtime['name'], DiskUse>();
  readonly #verdicts = new Map<Runtime['name'], Verdict[]>();
  #gauges: ReturnType<typeof createGauges> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  constructor(parts: DiskGuardParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setTimeout(() => this.#next(), LEAST_PAUSE_MS).unref();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** Last measurement of each runtime. */
  get uses(): DiskUse[] {
    return [...this.#uses.values()];
  }

  /** Measures and acts once; a round that is under way is joined. */
  round(): Promise<void> {
    return (this.#round ??= this.#goRound()
      .catch((error: unknown) => this.#warn(error, 'cannot hold services to their limits of disk'))
      .finally(() => (this.#round = undefined)));
  }

  #next(): void {
    const begun = performance.now();
    void this.round().then(() => {
      if (this.#abort.signal.aborted) return;
      const pause = Math.max(LEAST_PAUSE_MS, REST * (performance.now() - begun));
      this.#timer = setTimeout(() => this.#next(), pause).unref();
    });
  }

  #warn(error: unknown, message: string, more: Record<string, unknown> = {}): void {
    // Nothing is ended or written while a restored installation awaits its operator.
    if (this.#abort.signal.aborted || (error as { code?: string }).code === READ_ONLY_CODE) return;
    this.#parts.platform.log.warn({ err: error, ...more }, message);
  }

  async #goRound(): Promise<void> {
    const { platform, runtimes, nodeId } = this.#parts;
    const found = await runtimesOfMachine(platform, runtimes, nodeId);
    for (const name of this.#uses.keys())
      if (!found.some((runtime) => runtime.name === name)) {
        this.#uses.delete(name);
        this.#verdicts.delete(name);
      }
    // Side by side: one that hangs keeps none of the others from being held to its limits.
    await Promise.all(
      found.map((runtime) =>
        this.#hold(runtime).catch((error: unknown) =>
          this.#warn(error, 'cannot measure the disk use of a runtime', { runtime: runtime.name }),
        ),
      ),
    );
    await this.#save();
  }

  async #hold(runtime: Runtime): Promise<void> {
    if (!runtime.diskUse) return;
    const late = (cause: unknown) =>
      new Error(`The runtime ${runtime.name} did not say within ${MEASURE_SECONDS} s what is on its disk.`, { cause });
    const options = { seconds: MEASURE_SECONDS, patience: () => 0, late };
    const use = await withDeadline(this.#abort.signal, options, ({ signal }) => runtime.diskUse!(signal));
    this.#uses.set(runtime.name, use);
    const services = await this.#servicesOf(use);
    const verdicts = this.#judge(use, services);
    this.#verdicts.set(runtime.name, verdicts);
    const kept = verdicts.map(({ item }) => ({ serviceId: item.serviceId, subject: item.name }));
    const { platform, nodeId } = this.#parts;
    // Written first: where a restored installation refuses it, nothing is ended either.
    await dropWarnings(platform.db, { nodeId, runtime: runtime.name }, kept);
    const tasks = Map.groupBy(
      use.items.filter(({ kind }) => kind === 'task'),
      ({ serviceId }) => serviceId,
    );
    for (const verdict of verdicts) {
      const { serviceId } = verdict.item;
      const names = (tasks.get(serviceId) ?? []).map(({ name }) => name);
      await this.#act(runtime, { ...services.get(serviceId)!, tasks: names }, verdict);
    }
  }

  async #servicesOf({ items }: DiskUse): Promise<Map<string, MeasuredService>> {
    const ids = [...new Set(items.map(({ serviceId }) => serviceId))];
    return new Map((await listMeasured(this.#parts.platform.db, ids)).map((service) => [service.id, service]));
  }

  #judge({ items }: DiskUse, services: Map<string, MeasuredService>): Verdict[] {
    const { platform, kinds } = this.#parts;
    const sizes = new Map(
      [...services.values()].flatMap(({ id: serviceId, kind, spec }) =>
        (kinds[kind]?.volumes?.({ serviceId, spec }) ?? []).map(({ id, sizeGib }) => [id, sizeGib * GIB]),
      ),
    );
    return items.flatMap((item) =>
      services.has(item.serviceId) ? (judge(item, sizes.get(item.name), platform.settings) ?? []) : [],
    );
  }

  /** Acts on a verdict. An error is logged and does not stop the other verdicts; the next round tries again. */
  async #act(runtime: Runtime, service: ActedService, verdict: Verdict): Promise<void> {
    const { platform, installation, stopService } = this.#parts;
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      const ended = await act(
        { platform, installationId: installation.id, runtime, signal, stopService },
        service,
        verdict,
      );
      if (ended) this.#shown().ended.inc({ kind: ended });
    } catch (error) {
      this.#warn(error, 'cannot hold a service to its limits of disk', { serviceId: service.id, code: verdict.code });
    }
  }

  async #save(): Promise<void> {
    const { platform, nodeId } = this.#parts;
    const items = this.uses.flatMap((use) => use.items);
    const services = await this.#servicesOf({ items } as DiskUse);
    const totals = totalsOf(items, (id) => services.get(id)?.organization_id);
    await this.#addCheckouts(totals);
    this.#show(totals);
    await saveDiskUse(platform.db, nodeId, totals);
  }

  async #addCheckouts(totals: Map<string, DiskTotals>): Promise<void> {
    const { db, settings } = this.#parts.platform;
    const folder = path.join(settings.dataDir, 'checkouts');
    const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    const ids = names.filter((name) => /^[0-9a-f-]{36}$/.test(name));
    const organizations = await organizationsOfDeployments(db, ids);
    const trees = [...organizations.keys()].map((id) => ({ key: id, paths: [path.join(folder, id)] }));
    for (const [id, size] of await this.#parts.checkoutMeter.measure(trees, this.#abort.signal))
      addTo(totals, organizations.get(id)!, 'checkout', size);
  }

  #shown(): ReturnType<typeof createGauges> {
    return (this.#gauges ??= createGauges(this.#parts.registry));
  }

  #show(totals: Map<string, DiskTotals>): void {
    const { organizations, volumes } = this.#shown();
    organizations.reset();
    for (const [organization_id, own] of totals)
      for (const [kind, { bytes }] of own) organizations.set({ organization_id, kind }, Math.round(bytes));
    const all = [...this.#verdicts.values()].flat();
    for (const [code, state] of Object.entries(VOLUME_STATES))
      volumes.set({ state }, all.filter((verdict) => verdict.code === code).length);
  }
}

/** Creates the gauges of the last round for `/metrics`. */
function createGauges(registry: Registry): {
  organizations: Gauge<'organization_id' | 'kind'>;
  volumes: Gauge<'state'>;
  ended: Counter<'kind'>;
} {
  registry.removeSingleMetric('quarterdeck_disk_limit_ended_total');
  return {
    organizations: renewGauge(registry, {
      name: 'quarterdeck_organization_disk_bytes',
      help: 'Bytes that an organization takes of the disk of this machine, by kind: image, volume, instance, task, log, checkout.',
      labelNames: ['organization_id', 'kind'],
    }),
    volumes: renewGauge(registry, {
      name: 'quarterdeck_volumes_over',
      help: 'Volumes of this machine that are nearly_full (80 % of their size), full, or above the limit at which their service is stopped.',
      labelNames: ['state'],
    }),
    ended: new Counter({
      name: 'quarterdeck_disk_limit_ended_total',
      help: 'Instances that were started anew, executions that were ended and services that were stopped because of their use of disk.',
      labelNames: ['kind'],
      registers: [registry],
    }),
  };
}
