import { anySignal } from '#kernel/lease-signal.ts';
import { requireHeld } from '#runtimes/attempt.ts';
import { join } from 'node:path';
import { buildImage } from '#runtimes/host/build/build.ts';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { AttemptFence } from '#runtimes/host/attempts.ts';
import { Instances } from '#runtimes/host/instances.ts';
import { instanceName, type InstanceKey } from '#runtimes/host/layout.ts';
import { listWorkloads } from '#runtimes/host/list.ts';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import { endpointsOf } from '#runtimes/host/endpoints.ts';
import { execInInstance } from '#runtimes/host/exec.ts';
import { followService, lastLinesOf, tailService } from '#runtimes/host/logs.ts';
import { measure } from '#runtimes/host/metrics.ts';
import { tellingNoSpace } from '#runtimes/host/no-space.ts';
import { observeService } from '#runtimes/host/observe.ts';
import { MachinePrograms } from '#runtimes/host/programs/programs.ts';
import { Readiness } from '#runtimes/host/readiness.ts';
import { refusalsOf } from '#runtimes/host/refusals.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { reportOf } from '#runtimes/host/report.ts';
import { Rollout } from '#runtimes/host/rollout.ts';
import { Tasks } from '#runtimes/host/tasks.ts';
import { volumeContents } from '#runtimes/host/volume-contents.ts';
import { removeVolumes } from '#runtimes/host/volumes.ts';
import { HostDisk } from '#runtimes/host/disk-use.ts';
import { removeAbandoned } from '#runtimes/tools/work-folders.ts';
import {
  noCharts,
  rangeRefusals,
  requireWorkload,
  RuntimeError,
  throwIfCancelled,
  type BuildSpec,
  type Deployable,
  type FoundWorkload,
  type DiskUse,
  type EnvironmentIdentity,
  type ExecEnd,
  type ExecRequest,
  type Handle,
  type InstanceEndpoints,
  type InstanceMetrics,
  type LogLine,
  type LogOptions,
  type Observation,
  type Runtime,
  type RuntimeContext,
  type RuntimeReport,
  type TaskContext,
  type TaskEnd,
  type TaskSpec,
  type VolumeContents,
  type WorkloadIdentity,
  type WorkloadSpec,
} from '#runtimes/runtime.ts';

const FORMAT = 1;
/** Grace period for a removal by identity alone, when the service's own is unknown. */
const REMOVE_GRACE_MS = 10_000;

/** Runs workloads on this machine without a container engine (docs/contributing/engine.md, *Runtimes*, host). */
export class HostRuntime implements Runtime {
  readonly name = 'host';
  readonly volumes: VolumeContents;
  readonly #parts: HostParts;
  readonly #instances: Instances;
  readonly #readiness: Readiness;
  readonly #rollout: Rollout;
  readonly #tasks: Tasks;
  readonly #disk: HostDisk;
  readonly #lock = new KeyedLock();
  readonly #closed = new AbortController();

  constructor(parts: HostParts) {
    this.#parts = parts;
    this.#instances = new Instances(parts);
    this.#readiness = new Readiness(parts, this.#instances);
    this.#rollout = new Rollout(parts, this.#instances, this.#readiness);
    this.#tasks = new Tasks(parts);
    this.#disk = new HostDisk(parts);
    this.volumes = volumeContents(parts);
  }

  async check(): Promise<RuntimeReport> {
    return reportOf(this.#parts);
  }

  refusals(spec: Deployable | TaskSpec): string[] {
    if (spec.type === 'helm') return [noCharts('host')];
    return refusalsOf(spec, this.#parts);
  }

  build(spec: BuildSpec, context: RuntimeContext): Promise<{ image: string; cached: boolean }> {
    const name = `build-${spec.identity.serviceId}`;
    const { machine, images, cgroups, layout, buildDisk: disk } = this.#parts;
    const limit = () => ({ cgroups: cgroups.make(name, spec.resources), end: () => cgroups.remove(name) });
    const builder = { machine, dataDir: layout.dataDir, images, limit, disk };
    return this.#lock.run(name, () => buildImage(builder, spec, context));
  }

  async submit(deployable: Deployable, context: RuntimeContext): Promise<Handle> {
    const spec = requireWorkload(deployable, 'host');
    const { dataDir } = this.#parts.layout;
    return this.#lock.run(spec.identity.serviceId, () => tellingNoSpace(dataDir, () => this.#apply(spec, context)));
  }

  async #apply(spec: WorkloadSpec, context: RuntimeContext): Promise<Handle> {
    const { serviceId, generation } = spec.identity;
    const { releases } = this.#parts;
    requireGoing(context);
    const refusals = [...this.refusals(spec), ...rangeRefusals(spec, this.#parts.publishedRange)];
    if (refusals.length) throw new RuntimeError('refused', refusals.join('\n'));
    const highest = releases.generations(serviceId).at(-1) ?? 0;
    if (highest > generation)
      throw new RuntimeError('superseded', `Generation ${highest} of the service is there; ${generation} is older.`);
    new AttemptFence(this.#parts.layout, serviceId, generation, context).begin();
    const changed = this.#isChanged(spec);
    releases.write(spec);
    await this.#rollout.roll(spec, this.#wanted(spec, changed), context);
    return this.#handle(spec.identity);
  }

  /** Returns whether the same generation exists with another spec: its instances are then replaced. */
  #isChanged(spec: WorkloadSpec): boolean {
    const present = this.#parts.releases.read(spec.identity.serviceId, spec.identity.generation);
    return present !== null && JSON.stringify(present) !== JSON.stringify(spec);
  }

  /** Returns the instances of the generation that stay, filled up with new numbers. */
  #wanted(spec: WorkloadSpec, fresh: boolean): InstanceKey[] {
    const { serviceId, generation } = spec.identity;
    const present = this.#parts.layout.instances(serviceId).filter((at) => at.generation === generation);
    const kept = fresh ? [] : present.slice(0, spec.instances.min);
    const next = Math.max(0, ...present.map((at) => at.n)) + 1;
    const missing = Array.from({ length: spec.instances.min - kept.length }, (_, n) => ({
      serviceId,
      generation,
      n: next + n,
    }));
    return [...kept, ...missing];
  }

  async observe(handle: Handle): Promise<Observation> {
    return observeService(this.#parts, this.#instances, this.#readiness, handle.identity.serviceId);
  }

  stop({ serviceId }: WorkloadIdentity, _handle: Handle | null, context: RuntimeContext): Promise<void> {
    return this.#lock.run(serviceId, async () => {
      requireGoing(context);
      const { releases, router, layout } = this.#parts;
      const current = releases.current(serviceId);
      const spec = current && releases.read(serviceId, current.generation);
      if (current && spec) {
        await router.set(serviceId, current.generation, this.#rollout.routes(spec, []));
        requireHeld(context);
        await this.#parts.network.publish(spec, []);
      }
      requireHeld(context);
      await this.#parts.published.remove(serviceId);
      requireHeld(context);
      await this.#stopAll(layout.instances(serviceId));
      requireHeld(context);
      if (current) releases.setCurrent(serviceId, { ...current, stopped: true });
    });
  }

  restart(handle: Handle, asked: number, context: RuntimeContext): Promise<Handle> {
    const { serviceId } = handle.identity;
    return this.#lock.run(serviceId, async () => {
      requireGoing(context);
      const current = this.#parts.releases.current(serviceId);
      const spec = current && this.#parts.releases.read(serviceId, current.generation);
      if (!spec) throw new RuntimeError('failed', 'Nothing of the service is here that could be restarted; deploy it.');
      const { generation } = current;
      const isDone = current.restartedFor === asked && !current.stopped;
      const wanted = isDone ? current.instances.map((n) => ({ serviceId, generation, n })) : this.#wanted(spec, true);
      await this.#rollout.roll(spec, wanted, context, asked);
      return this.#handle(spec.identity);
    });
  }

  remove(identity: WorkloadIdentity, _handle: Handle | null, context: RuntimeContext): Promise<void> {
    const { serviceId, environmentId } = identity;
    return this.#lock.run(serviceId, async () => {
      requireGoing(context);
      const { router, layout, network, images } = this.#parts;
      await router.remove(serviceId);
      requireHeld(context);
      await this.#parts.published.remove(serviceId);
      requireHeld(context);
      // Stopping takes time, in which another attempt may replace this one: the check follows before anything is removed.
      await this.#stopAll(layout.instances(serviceId));
      requireHeld(context);
      await Promise.all(layout.instances(serviceId).map((at) => this.#instances.remove(at, this.#graceOf(at))));
      await this.#tasks.remove(serviceId, 'all');
      requireHeld(context);
      await network.forget(environmentId, serviceId);
      requireHeld(context);
      removeVolumes(layout, serviceId);
      images.removeAll(serviceId);
      removeTree(layout.service(serviceId));
    });
  }

  async #stopAll(instances: readonly InstanceKey[]): Promise<void> {
    await Promise.all(instances.map((at) => this.#instances.stop(at, this.#graceOf(at))));
  }

  #graceOf(at: InstanceKey): number {
    const spec = this.#parts.releases.read(at.serviceId, at.generation);
    return spec ? spec.gracePeriodSeconds * 1000 : REMOVE_GRACE_MS;
  }

  async *logs(handle: Handle, options: LogOptions): AsyncGenerator<LogLine> {
    const { serviceId } = handle.identity;
    const { layout } = this.#parts;
    if (!options.follow || options.previous) return yield* await tailService(layout, serviceId, options);
    const signal = anySignal([options.signal, this.#closed.signal]);
    return yield* followService(layout, serviceId, { ...options, signal });
  }

  formerLogs({ serviceId }: Pick<WorkloadIdentity, 'serviceId'>, options: Omit<LogOptions, 'follow'>) {
    return this.#parts.formerLogs.read(serviceId, options);
  }

  exec(handle: Handle, request: ExecRequest, signal: AbortSignal): Promise<ExecEnd> {
    return execInInstance(this.#parts, this.#instances, handle.identity.serviceId, request, signal);
  }

  async endpoints(handle: Handle): Promise<InstanceEndpoints[]> {
    return endpointsOf(this.#parts, this.#instances, handle.identity.serviceId);
  }

  async metrics(handle: Handle): Promise<InstanceMetrics[]> {
    const { serviceId } = handle.identity;
    const current = this.#parts.releases.current(serviceId);
    const keys = (current?.instances ?? []).map((n) => ({ serviceId, generation: current!.generation, n }));
    const spec = current && this.#parts.releases.read(serviceId, current.generation);
    return spec ? measure(this.#instances, keys, spec.resources) : [];
  }

  async list(): Promise<FoundWorkload[]> {
    const { installation } = this.#parts;
    return listWorkloads(this.#parts, this.#instances).filter(({ identity }) => identity.installation === installation);
  }

  async hasImage(_identity: WorkloadIdentity, image: string): Promise<boolean> {
    const { images, machine } = this.#parts;
    if (MachinePrograms.parse(image)) return this.#parts.programs.refusal(image) === null;
    return images.find(image)?.mode === machine.mode;
  }

  async removeImages({ serviceId }: WorkloadIdentity, images: string[] | 'all'): Promise<void> {
    const { releases, images: store } = this.#parts;
    const released = releases.generations(serviceId).map((generation) => releases.read(serviceId, generation)!.image);
    const used = [...released, ...this.#tasks.imagesInUse(serviceId)];
    const kept = images === 'all' ? used : images.filter((image) => used.includes(image));
    if (images !== 'all')
      store.remove(
        serviceId,
        images.filter((image) => !used.includes(image)),
      );
    else if (used.length === 0) store.removeAll(serviceId);
    if (kept.length > 0)
      throw new RuntimeError('failed', `Still in use by an instance, so not removed: ${kept.join(', ')}.`);
  }

  run(spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
    return tellingNoSpace(this.#parts.layout.dataDir, () => this.#tasks.run(spec, context));
  }

  removeTasks({ serviceId }: Pick<WorkloadIdentity, 'serviceId'>, names: string[]): Promise<void> {
    return this.#tasks.remove(serviceId, names);
  }

  hostAddress({ environmentId }: { environmentId: string }): Promise<string> {
    return this.#parts.network.hostAddress(environmentId);
  }

  removeEnvironment({ environmentId }: EnvironmentIdentity): Promise<void> {
    return this.#parts.network.removeEnvironment(environmentId);
  }

  async removeBroken(): Promise<void> {
    this.#parts.images.removeBroken();
    await this.#parts.formerLogs.sweep();
    removeAbandoned(join(this.#parts.layout.dataDir, 'host'), removeTree);
    const ends = await Promise.allSettled(
      this.#parts.layout
        .services()
        .map((serviceId) => this.#lock.run(serviceId, () => this.#finishReplacements(serviceId))),
    );
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  async #finishReplacements(serviceId: string): Promise<void> {
    const { releases } = this.#parts;
    const current = releases.current(serviceId);
    const spec = current && releases.read(serviceId, current.generation);
    if (!spec || current.stopped) return;
    const { generation } = current;
    for (const n of current.instances) await this.#instances.finishReplacement({ serviceId, generation, n }, spec);
  }

  diskUse(signal: AbortSignal): Promise<DiskUse> {
    return this.#disk.measure(signal);
  }

  replaceInstance(
    { serviceId }: Pick<WorkloadIdentity, 'serviceId'>,
    instance: string,
    reason: string,
    context: RuntimeContext,
  ): Promise<LogLine[] | null> {
    return this.#lock.run(serviceId, async () => {
      requireGoing(context);
      const { releases, layout } = this.#parts;
      const at = layout.instances(serviceId).find((one) => instanceName(one) === instance);
      const spec = at && releases.read(serviceId, at.generation);
      if (!spec || releases.current(serviceId)?.stopped) return null;
      await this.#instances.replace(at, spec, reason);
      return lastLinesOf(layout, at);
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
  }

  #handle(identity: WorkloadIdentity): Handle {
    return { format: FORMAT, runtime: this.name, identity, data: { mode: this.#parts.machine.mode } };
  }
}

function requireGoing(context: RuntimeContext): void {
  throwIfCancelled(context.signal);
}
