import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { Instances } from '#runtimes/host/instances.ts';
import type { InstanceKey } from '#runtimes/host/layout.ts';
import { PublishedPorts } from '#runtimes/host/publish/published-ports.ts';
import type { Table } from '#runtimes/host/publish/table.ts';
import type { Readiness } from '#runtimes/host/readiness.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { AttemptFence } from '#runtimes/host/attempts.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';
import type { RuntimeContext, WorkloadSpec } from '#runtimes/runtime.ts';

/** Moves a service from its present instances to the required ones. */
export class Rollout {
  readonly #parts: HostParts;
  readonly #instances: Instances;
  readonly #readiness: Readiness;

  constructor(parts: HostParts, instances: Instances, readiness: Readiness) {
    this.#parts = parts;
    this.#instances = instances;
    this.#readiness = readiness;
  }

  /**
   * Starts the required instances, waits until they are ready, moves the routes and the internal name, and ends the others. If a candidate
   * fails, it is removed and the others continue to serve; if they had to make room, they are started again. `restartedFor` is recorded
   * with them.
   */
  async roll(spec: WorkloadSpec, wanted: InstanceKey[], context: RuntimeContext, restartedFor?: number): Promise<void> {
    const { serviceId, generation } = spec.identity;
    const fence = new AttemptFence(this.#parts.layout, serviceId, restartedFor ?? generation, context);
    fence.begin();
    const present = this.#parts.layout.instances(serviceId);
    const others = present.filter((at) => !wanted.some((one) => same(one, at)));
    const makeRoom = wanted.length > 0 && this.#mustMakeRoom(spec, others);
    const fresh = wanted.filter((at) => !this.#instances.shim(at)?.alive);
    try {
      if (makeRoom) {
        context.log('The present instances end before the new ones start: both cannot run at once.');
        await this.#endAll(others, spec);
      }
      for (const at of fresh) {
        fence.require();
        await this.#instances.start(at, spec);
      }
      const waiting = wanted.map((at) => this.#readiness.wait(at, spec, context.signal));
      await Promise.allSettled(waiting);
      await Promise.all(waiting);
      fence.require();
      await this.#parts.published.set(spec.identity.serviceId, this.#published(spec, wanted));
    } catch (error) {
      // A later attempt may already use the instances of this one.
      if (!fence.isReplaced()) await this.#undo(spec, wanted, { ended: makeRoom ? others : [], fence, context });
      throw error;
    }
    await this.#switchTo(spec, wanted, others, { context, restartedFor, fence });
  }

  /** Returns the routes of a spec to instances. Without instances the hosts stay known, and answer that nothing serves. */
  routes(spec: WorkloadSpec, instances: readonly InstanceKey[]): RouteEntry[] {
    return spec.routes.flatMap((route) => {
      const port = spec.ports.find((one) => one.id === route.portId);
      if (!port || (port.protocol !== 'HTTP' && port.protocol !== 'GRPC')) return [];
      const upstreams = instances.flatMap((at) => this.#upstream(at, port.internalPort));
      const { host, certificate } = route;
      return [{ host, protocol: port.protocol, upstreams, ...(certificate ? { certificate } : {}) }];
    });
  }

  async #switchTo(
    spec: WorkloadSpec,
    wanted: InstanceKey[],
    others: InstanceKey[],
    {
      context,
      restartedFor,
      fence,
    }: { context: RuntimeContext; restartedFor: number | undefined; fence: AttemptFence },
  ): Promise<void> {
    const { serviceId, generation } = spec.identity;
    const old = others.flatMap((at) => this.#upstreams(at));
    await this.#parts.router.set(serviceId, generation, this.routes(spec, wanted));
    await this.#parts.network.publish(
      spec,
      wanted.flatMap((at) => this.#instances.record(at)?.attachment.address ?? []),
    );
    const instances = wanted.map((at) => at.n);
    this.#parts.releases.setCurrent(serviceId, { generation, instances, stopped: false, restartedFor });
    context.log(
      wanted.length ? `${wanted.length} ready; requests go to generation ${generation}.` : 'No instance is required.',
    );
    if (old.length) await this.#parts.router.drained(old, spec.gracePeriodSeconds * 1000);
    fence.require();
    await this.#retire(others, spec, context);
    for (const older of this.#parts.layout.generations(serviceId))
      if (older < generation) removeTree(this.#parts.layout.generation(serviceId, older));
  }

  /**
   * Returns whether the present instances must end first. Storage has one user at a time, and so has a port in the machine's network,
   * unless the service listens on PORT.
   */
  #mustMakeRoom(spec: WorkloadSpec, others: InstanceKey[]): boolean {
    if (others.length === 0) return false;
    if (spec.storage.length > 0) return true;
    return !this.#parts.network.isolated && others.some((at) => this.#hasOwnPort(at));
  }

  #hasOwnPort(at: InstanceKey): boolean {
    const attachment = this.#instances.record(at)?.attachment;
    const spec = this.#parts.releases.read(at.serviceId, at.generation);
    if (!attachment || !spec) return false;
    return spec.ports.some(({ internalPort }) => (attachment.ports[internalPort] ?? internalPort) !== attachment.port);
  }

  async #endAll(instances: InstanceKey[], spec: WorkloadSpec): Promise<void> {
    await Promise.all(instances.map((at) => this.#instances.stop(at, spec.gracePeriodSeconds * 1000)));
  }

  async #retire(instances: InstanceKey[], spec: WorkloadSpec, context: RuntimeContext): Promise<void> {
    const tell = (line: string) => context.log(line);
    await Promise.all(instances.map((at) => this.#instances.retire(at, spec.gracePeriodSeconds * 1000, tell)));
  }

  /** Removes failed candidates and restarts ended instances. Instances that serve are never removed: their shims keep restarting them. */
  async #undo(
    spec: WorkloadSpec,
    wanted: InstanceKey[],
    { ended, fence, context }: { ended: InstanceKey[]; fence: AttemptFence; context: RuntimeContext },
  ): Promise<void> {
    const { serviceId, generation } = spec.identity;
    const { releases, layout } = this.#parts;
    const current = releases.current(serviceId);
    const serves = (at: InstanceKey) => current?.generation === at.generation && current.instances.includes(at.n);
    const candidates = wanted.filter((at) => !serves(at));
    await this.#retire(candidates, spec, context);
    if (fence.isReplaced()) return;
    if (current?.generation !== generation) removeTree(layout.generation(serviceId, generation));
    const serving = current ? releases.read(serviceId, current.generation) : null;
    for (const at of ended.filter(serves)) {
      const previous = releases.read(at.serviceId, at.generation);
      if (!previous) continue;
      if (fence.isReplaced()) return;
      await this.#instances.start(at, previous);
      await this.#readiness.wait(at, previous, new AbortController().signal);
    }
    const keys = current?.instances.map((n) => ({ serviceId, generation: current.generation, n })) ?? [];
    await this.#parts.published.set(serviceId, serving && !current?.stopped ? this.#published(serving, keys) : []);
  }

  /** Returns the published ports of a spec, without those that an instance itself opens in the machine's network. */
  #published(spec: WorkloadSpec, instances: readonly InstanceKey[]): Table {
    if (instances.length === 0) return [];
    return PublishedPorts.of(spec).flatMap(({ port, protocol, internalPort }) => {
      const upstreams = instances.flatMap((at) => this.#upstream(at, internalPort));
      const itself = !this.#parts.network.isolated && upstreams.some((upstream) => upstream.port === port);
      return itself ? [] : [{ port, protocol, upstreams }];
    });
  }

  /** Returns every upstream of an instance that may have requests in progress. */
  #upstreams(at: InstanceKey): Upstream[] {
    const ports = this.#parts.releases.read(at.serviceId, at.generation)?.ports ?? [];
    return ports.flatMap((port) => this.#upstream(at, port.internalPort));
  }

  #upstream(at: InstanceKey, port: number): Upstream[] {
    const attachment = this.#instances.record(at)?.attachment;
    return attachment ? [{ address: attachment.address, port: attachment.ports[port] ?? port }] : [];
  }
}

const same = (a: InstanceKey, b: InstanceKey) => a.generation === b.generation && a.n === b.n;
