import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { identify, isRunning, readBootId } from '#runtimes/tools/shim/identity.ts';
import { LAST_LINES, RuntimeError } from '#runtimes/runtime.ts';
import type {
  BuildSpec,
  ChartService,
  ChartSpec,
  Deployable,
  DiskItem,
  DiskUse,
  FoundWorkload,
  Handle,
  InstanceEndpoints,
  InstanceMetrics,
  LogLine,
  LogOptions,
  Observation,
  Runtime,
  RuntimeContext,
  TaskContext,
  RuntimeReport,
  TaskEnd,
  TaskSpec,
  WorkloadIdentity,
  WorkloadSpec,
} from '#runtimes/runtime.ts';
import { isReady, startProblem } from '#runtimes/fake/application.ts';
import { pretendChart } from '#runtimes/fake/charts.ts';
import { pretendBuild } from '#runtimes/fake/building.ts';
import type { FakeOptions } from '#runtimes/fake/options.ts';
import { FaultPlan, wait } from '#runtimes/fake/faults.ts';
import type { FakeCall, FakeFaults } from '#runtimes/fake/faults.ts';
import {
  FakeServers,
  nameOf,
  newInstance,
  now,
  readLog,
  routesOf,
  upstreamsOf,
  writeLog,
} from '#runtimes/fake/serving.ts';
import { FakeRollouts } from '#runtimes/fake/rollouts.ts';
import type { FakeService, FakeStore } from '#runtimes/fake/store.ts';
import { FakeTasks } from '#runtimes/fake/tasks.ts';
import type { DecideOutcome } from '#runtimes/fake/tasks.ts';

/** Fake runtime with the parts that tests inspect and change. */
export interface FakeRuntime extends Runtime {
  readonly calls: readonly FakeCall[];
  /** Faults from now on. */
  faults: FakeFaults;
  /** Pretended disk use of services. */
  disk: DiskItem[];
  /** Returns the applied spec of a service, if it still exists. */
  specOf(serviceId: string): WorkloadSpec | undefined;
  /** Sets the outcome of a service's future executions (`*`: of all other services); null restores the default (no output, status 0). */
  onTask(serviceId: string, decide: DecideOutcome | null): void;
  /** Returns a service's executions, oldest first, including removed ones that this object began. */
  tasksOf(serviceId: string): TaskSpec[];
  /** Returns the names of everything that is stored of a service. */
  leftovers(identity: WorkloadIdentity): string[];
}

/** Implementation of the fake runtime; create it with `createFakeRuntime`. */
export class FakeRuntimeObject implements FakeRuntime {
  readonly name = 'fake';
  readonly pretends = true;
  readonly #store: FakeStore;
  readonly #options: FakeOptions;
  readonly #servers: FakeServers;
  readonly #plan: FaultPlan;
  readonly #tasks: FakeTasks;
  readonly #bootId = readBootId();
  disk: DiskItem[] = [];
  readonly #self = identify(process.pid, this.#bootId)!;
  #adopted: Promise<void> | undefined;
  readonly #rollouts: FakeRollouts | undefined;
  /** Present for a fake cluster, which rolls out by itself. */
  readonly progress?: Runtime['progress'];

  constructor(store: FakeStore, options: FakeOptions) {
    this.#store = store;
    this.#options = options;
    this.#servers = new FakeServers(store);
    this.#plan = new FaultPlan(options, options.directory && join(options.directory, 'faults'));
    this.#tasks = new FakeTasks(store, this.#plan);
    if (!options.cluster) return;
    const rollouts = new FakeRollouts(store, options.cluster);
    this.#rollouts = rollouts;
    this.progress = (handle, context) => this.#progress(rollouts, handle, context);
  }

  get calls(): readonly FakeCall[] {
    return this.#plan.calls;
  }

  get faults(): FakeFaults {
    return this.#plan.faults;
  }

  set faults(faults: FakeFaults) {
    this.#plan.faults = faults;
  }

  specOf(serviceId: string): WorkloadSpec | undefined {
    return this.#store.read(serviceId)?.spec;
  }

  onTask(serviceId: string, decide: DecideOutcome | null): void {
    this.#tasks.on(serviceId, decide);
  }

  tasksOf(serviceId: string): TaskSpec[] {
    return this.#tasks.specsOf(serviceId);
  }

  leftovers({ serviceId }: WorkloadIdentity): string[] {
    const service = this.#store.read(serviceId);
    const images = this.#store.images(serviceId).map((image) => `image ${image}`);
    const log = this.#store.readLog(serviceId, 0).length > 0 ? ['log'] : [];
    const tasks = this.#store.tasks(serviceId).map(({ spec }) => `execution ${spec.name}`);
    const storage = Object.keys(this.#store.readStorage(serviceId)).map((path) => `file ${path}`);
    return [...(service ? ['service'] : []), ...log, ...images, ...tasks, ...storage];
  }

  async check(): Promise<RuntimeReport> {
    await this.#plan.enter('check', null);
    const limits = ['Nothing is run: deployments are pretended.'];
    return { ok: true, description: 'fake, runs nothing', limits, missing: this.#options.missing };
  }

  refusals(spec: Deployable | TaskSpec): string[] {
    return this.#options.refusals?.(spec) ?? [];
  }

  async submit(deployable: Deployable, context: RuntimeContext): Promise<Handle> {
    const spec = deployable.type === 'helm' ? pretendChart(deployable) : deployable;
    await this.#enter('submit', spec.identity, context.signal);
    const present = this.#store.read(spec.identity.serviceId);
    this.#refuseOlder(spec.identity, present);
    if (present && !present.stopped && isDeepStrictEqual(present.spec, JSON.parse(JSON.stringify(spec)))) {
      context.log(`${spec.displayName} runs already.`);
      return handleOf(spec.identity);
    }
    context.log(`Starting ${spec.instances.min} instance(s) of ${spec.image}.`);
    if (this.#rollouts) {
      this.#rollouts.begin(spec);
      return handleOf(spec.identity);
    }
    await this.#becomeReady(spec, context);
    await this.#takeOver(spec, present, context);
    context.log(`${spec.displayName} is ready.`);
    return handleOf(spec.identity);
  }

  async diff(chart: ChartSpec, context: RuntimeContext): Promise<void> {
    await this.#enter('diff', chart.identity, context.signal);
    const present = this.#store.read(chart.identity.serviceId)?.spec.image ?? 'nothing';
    context.log(`${present} would become ${chart.title}.`);
  }

  async chartServices(handle: Handle): Promise<ChartService[]> {
    await this.#enter('chartServices', handle.identity);
    const ports = this.#store.read(handle.identity.serviceId)?.spec.ports ?? [];
    return ports.map(({ name, internalPort }) => ({
      name,
      type: 'ClusterIP',
      ports: [{ port: internalPort }],
      selectors: [],
    }));
  }

  async observe(handle: Handle): Promise<Observation> {
    await this.#enter('observe', handle.identity);
    const service = this.#store.read(handle.identity.serviceId);
    if (!service) return { state: 'absent', generation: null, instances: [], message: '' };
    const state = service.stopped ? 'stopped' : 'ready';
    const instances = service.instances.map(({ name, restarts, startedAt, lastExit }) => {
      return { name, state: state as 'stopped' | 'ready', restarts, startedAt, lastExit };
    });
    return {
      state: service.stopped ? 'stopped' : 'running',
      generation: service.stopped ? null : service.spec.identity.generation,
      instances,
      message: '',
    };
  }

  async stop(identity: WorkloadIdentity, _handle: Handle | null, context: RuntimeContext): Promise<void> {
    await this.#enter('stop', identity, context.signal);
    const service = this.#store.read(identity.serviceId);
    if (!service || service.stopped) return context.log('It is stopped already.');
    this.#refuseOlder(identity, service);
    await this.#options.router?.remove(identity.serviceId);
    const lastExit = { code: 0, signal: null, reason: 'stopped', at: now() };
    const instances = service.instances.map((instance) => ({ ...instance, lastExit, port: null }));
    this.#store.write({ ...service, stopped: true, instances });
    this.#end(service, context);
  }

  async restart(handle: Handle, asked: number, context: RuntimeContext): Promise<Handle> {
    await this.#enter('restart', handle.identity, context.signal);
    const service = this.#store.read(handle.identity.serviceId);
    if (!service) throw new RuntimeError('failed', 'There is nothing to restart: the service was never applied here.');
    this.#refuseOlder(handle.identity, service);
    if (service.restartedFor === asked && !service.stopped) return handleOf(service.spec.identity);
    if (this.#rollouts) {
      this.#rollouts.begin(service.spec, asked);
      return handleOf(service.spec.identity);
    }
    await this.#becomeReady(service.spec, context);
    await this.#takeOver(service.spec, service, context, asked);
    return handleOf(service.spec.identity);
  }

  async remove(identity: WorkloadIdentity, _handle: Handle | null, context: RuntimeContext): Promise<void> {
    await this.#enter('remove', identity, context.signal);
    const service = this.#store.read(identity.serviceId);
    if (service) this.#refuseOlder(identity, service);
    await this.#options.router?.remove(identity.serviceId);
    if (service) this.#end(service, context);
    this.#store.delete(identity.serviceId);
  }

  async *logs(handle: Handle, options: LogOptions): AsyncGenerator<LogLine, void, undefined> {
    await this.#enter('logs', handle.identity);
    yield* readLog(this.#store, handle.identity.serviceId, options);
  }

  async build(spec: BuildSpec, context: RuntimeContext): Promise<{ image: string; cached: boolean }> {
    await this.#enter('build', spec.identity, context.signal);
    return pretendBuild(this.#store, spec, context);
  }

  async run(spec: TaskSpec, context: TaskContext): Promise<TaskEnd> {
    await this.#enter('run', spec.identity, context.signal);
    return this.#tasks.run(spec, context);
  }

  async removeTasks(identity: Omit<WorkloadIdentity, 'generation'>, names: string[]): Promise<void> {
    await this.#plan.enter('removeTasks', identity);
    this.#tasks.remove(identity, names);
  }

  async endpoints(handle: Handle): Promise<InstanceEndpoints[]> {
    await this.#enter('endpoints', handle.identity);
    const service = this.#store.read(handle.identity.serviceId);
    if (!service || service.stopped) return [];
    const ports = service.spec.ports.filter(({ protocol }) => protocol !== 'UDP');
    return service.instances.map(({ name, port }) => ({
      instance: name,
      // Without a router nothing listens: connections are refused.
      ports: ports.map(({ internalPort }) => ({ internalPort, address: '127.0.0.1', port: port ?? 1 })),
    }));
  }

  async metrics(handle: Handle): Promise<InstanceMetrics[]> {
    await this.#enter('metrics', handle.identity);
    const service = this.#store.read(handle.identity.serviceId);
    if (!service || service.stopped) return [];
    const { cpuMilli, memoryMib } = service.spec.resources;
    const limits = { cpuLimitMilli: cpuMilli, memoryLimitBytes: memoryMib * 2 ** 20 };
    return service.instances.map(({ name, startedAt, restarts }) => ({
      instance: name,
      cpuMilli: Math.round(cpuMilli / 10),
      memoryBytes: memoryMib * 2 ** 19,
      ...limits,
      startedAt,
      restarts,
      at: now(),
    }));
  }

  /** Lists without adopting the services of other processes: it only reads. */
  async list(): Promise<FoundWorkload[]> {
    await this.#plan.enter('list', null);
    return this.#store.all().map(({ spec, stopped }) => {
      return { identity: spec.identity, displayName: spec.displayName, state: stopped ? 'stopped' : 'running' };
    });
  }

  async hasImage(identity: WorkloadIdentity, image: string): Promise<boolean> {
    await this.#enter('hasImage', identity);
    return this.#store.readImage(image) !== null;
  }

  async removeImages(identity: WorkloadIdentity, images: string[] | 'all'): Promise<void> {
    await this.#enter('removeImages', identity);
    const used = this.#store.read(identity.serviceId)?.spec.image;
    for (const image of this.#store.images(identity.serviceId)) {
      if (images !== 'all' && !images.includes(image)) continue;
      if (image === used) throw new RuntimeError('failed', `The image ${image} is in use.`);
      this.#store.deleteImage(image);
    }
  }

  /** Removes nothing: the pretended services of an environment share nothing. */
  async removeEnvironment(): Promise<void> {
    await this.#plan.enter('removeEnvironment', null);
  }

  async diskUse(signal: AbortSignal): Promise<DiskUse> {
    await this.#plan.enter('diskUse', null, signal);
    const sum = (...kinds: DiskItem['kind'][]) =>
      this.disk.filter(({ kind }) => kinds.includes(kind)).reduce((total, { bytes }) => total + bytes, 0);
    const workloads = sum('instance', 'task', 'log');
    return { images: sum('image'), volumes: sum('volume'), workloads, buildCache: 0, items: this.disk };
  }

  async replaceInstance(
    identity: Omit<WorkloadIdentity, 'generation'>,
    instance: string,
    reason: string,
    context: RuntimeContext,
  ): Promise<LogLine[] | null> {
    await this.#plan.enter('replaceInstance', { ...identity, generation: 0 }, context.signal);
    const service = this.#store.read(identity.serviceId);
    const found = service?.instances.find(({ name }) => name === instance);
    if (!service || !found || service.stopped) return null;
    const lastExit = { code: null, signal: null, reason, at: now() };
    const { port, startedAt: previousStartedAt } = found;
    const fresh = { ...newInstance(found.name), port, previousStartedAt, restarts: found.restarts + 1, lastExit };
    const instances = service.instances.map((one) => (one === found ? fresh : one));
    this.#store.write({ ...service, instances });
    this.disk = this.disk.filter(({ kind, name }) => kind !== 'instance' || name !== instance);
    return this.#store.readLog(identity.serviceId, 0).slice(-LAST_LINES);
  }

  async trimCaches(): Promise<string[]> {
    await this.#plan.enter('trimCaches', null);
    return [];
  }

  async close(): Promise<void> {
    this.#servers.closeAll();
  }

  async #enter(verb: FakeCall['verb'], identity: WorkloadIdentity, signal?: AbortSignal): Promise<void> {
    await this.#plan.enter(verb, identity, signal);
    this.#adopted ??= this.#adopt();
    await this.#adopted;
  }

  /** Adopts the services of a process that has ended. */
  async #adopt(): Promise<void> {
    if (!this.#options.router || !this.#options.directory) return;
    for (const service of this.#store.all()) {
      if (service.stopped || isRunning(service.owner, this.#bootId)) continue;
      const found = structuredClone(service);
      // Another process may change the service while the servers open: its change takes precedence.
      await this.#serve(service, () => isDeepStrictEqual(this.#store.read(found.spec.identity.serviceId), found));
    }
  }

  #refuseOlder(identity: WorkloadIdentity, present: FakeService | null): void {
    const { generation } = (present?.candidate ?? present)?.spec.identity ?? { generation: 0 };
    if (generation > identity.generation)
      throw new RuntimeError('superseded', `Generation ${generation} is there, ${identity.generation} came too late.`);
  }

  async #progress(rollouts: FakeRollouts, handle: Handle, context: RuntimeContext): Promise<void> {
    await this.#enter('progress', handle.identity, context.signal);
    const candidate = await rollouts.follow(handle.identity, context);
    if (!candidate) return;
    try {
      const { spec, problem } = candidate;
      if (problem) throw new RuntimeError('not_ready', `${nameOf(spec, 1)} did not get ready: ${problem}.`);
      await this.#becomeReady(spec, context);
    } catch (error) {
      rollouts.takeBack(candidate);
      throw error;
    }
    const { candidate: _candidate, ...before } = this.#store.read(handle.identity.serviceId)!;
    const present = before.instances.length > 0 || !before.stopped ? before : null;
    await this.#takeOver(candidate.spec, present, context, candidate.restartedFor);
    context.log(`${candidate.spec.displayName} is ready.`);
  }

  /** Waits until the candidate is ready, according to its variables (fake/application.ts). */
  async #becomeReady(spec: WorkloadSpec, context: RuntimeContext): Promise<void> {
    if (spec.instances.min === 0) return;
    const name = nameOf(spec, 1);
    const problem = startProblem(spec.environment);
    if (problem) {
      writeLog(this.#store, { spec }, name, problem, 'stderr');
      throw new RuntimeError(
        'not_ready',
        `${name} ended with status 3. The last lines of its log:\n${problem}`,
      ).withLines(this.#store.readLog(spec.identity.serviceId, 0).slice(-LAST_LINES));
    }
    if (isReady(spec.environment)) return;
    await wait(spec.readyTimeoutSeconds * 1000, context.signal);
    throw new RuntimeError('not_ready', `${name} did not get ready within ${spec.readyTimeoutSeconds} s.`);
  }

  async #takeOver(
    spec: WorkloadSpec,
    present: FakeService | null,
    context: RuntimeContext,
    restartedFor?: number,
  ): Promise<void> {
    const instances = Array.from({ length: spec.instances.min }, (_, index) => newInstance(nameOf(spec, index + 1)));
    const stopped = instances.length === 0;
    const service = { spec, stopped, restartedFor, instances, owner: this.#self };
    const release = spec.environment['RELEASE'] ?? spec.identity.generation;
    for (const { name } of instances) writeLog(this.#store, service, name, `listening, release ${release}`);
    await this.#serve(service);
    if (!present) return;
    const grace = spec.gracePeriodSeconds * 1000;
    await this.#options.router?.drained(upstreamsOf(present), grace);
    this.#end(present, context);
  }

  /** Opens the servers of a service, stores it, and moves its routes to them; does nothing if `isWanted` is false by then. */
  async #serve(service: FakeService, isWanted = () => true): Promise<void> {
    const { router } = this.#options;
    if (router) for (const instance of service.instances) instance.port = await this.#servers.open(service, instance);
    if (!isWanted()) {
      for (const { port } of upstreamsOf(service)) this.#servers.close(port);
      return;
    }
    this.#store.write({ ...service, owner: this.#self });
    const { identity } = service.spec;
    await router?.set(identity.serviceId, identity.generation, routesOf(service));
  }

  /** Ends the instances of a release. */
  #end(service: FakeService, context: RuntimeContext): void {
    for (const { name, port } of service.instances) {
      if (!service.stopped) writeLog(this.#store, service, name, 'ending');
      if (port !== null) this.#servers.close(port);
    }
    context.log(`${service.instances.length} instance(s) of ${service.spec.displayName} ended.`);
  }
}

const handleOf = (identity: WorkloadIdentity): Handle => ({ format: 1, runtime: 'fake', identity, data: {} });
