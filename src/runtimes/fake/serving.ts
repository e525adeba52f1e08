import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';
import type { LogLine, LogOptions, WorkloadSpec } from '#runtimes/runtime.ts';
import type { ApplicationHost } from '#runtimes/fake/application.ts';
import { createApplication } from '#runtimes/fake/application.ts';
import { wait } from '#runtimes/fake/faults.ts';
import type { FakeInstance, FakeService, FakeStore } from '#runtimes/fake/store.ts';
import { earliestOf, isChosen, isWithin } from '#runtimes/tools/log-window.ts';

/** Time in the format of log lines and observations. */
export const now = (): string => new Date().toISOString();

/** Writes a line of an instance into the service's log, with secrets masked as in every runtime. */
export function writeLog(
  store: FakeStore,
  service: Pick<FakeService, 'spec'>,
  instance: string,
  text: string,
  stream: LogLine['stream'] = 'stdout',
): void {
  const { identity, secrets } = service.spec;
  const masked = secrets
    .filter((secret) => secret.length >= 4)
    .reduce((line, secret) => line.replaceAll(secret, '***'), text);
  for (const line of masked.split('\n'))
    store.appendLog(identity.serviceId, { at: now(), instance, generation: identity.generation, stream, text: line });
}

/** Yields the last chosen lines of a service's log, then with `follow` the new ones until the signal is aborted. */
export async function* readLog(
  store: FakeStore,
  serviceId: string,
  options: LogOptions,
): AsyncGenerator<LogLine, void, undefined> {
  const from = earliestOf(options);
  const instances = store.read(serviceId)?.instances ?? [];
  const isWanted = (line: LogLine): boolean =>
    isChosen(line.instance, options) &&
    isWithin(line.at, { from }) &&
    (!options.previous || instances.some((instance) => isOfEndedRun(instance, line)));
  const all = store.readLog(serviceId, 0);
  yield* options.tail > 0 ? all.filter(isWanted).slice(-options.tail) : [];
  let seen = all.length;
  while (options.follow && !options.previous && !options.signal.aborted) {
    await wait(20, options.signal).catch((error: unknown) => {
      if (!options.signal.aborted) throw error;
    });
    const lines = store.readLog(serviceId, seen);
    seen += lines.length;
    yield* lines.filter(isWanted);
  }
}

const isOfEndedRun = ({ name, previousStartedAt: from, startedAt: to }: FakeInstance, line: LogLine): boolean =>
  from !== undefined && line.instance === name && isWithin(line.at, { from, to });

/** Servers of this process, which answer for the pretended instances. */
export class FakeServers {
  readonly #store: FakeStore;
  readonly #servers = new Map<number, Server>();

  constructor(store: FakeStore) {
    this.#store = store;
  }

  /** Starts a server for an instance on a free port of loopback; returns the port. */
  async open(service: FakeService, instance: FakeInstance): Promise<number> {
    const server = createApplication(this.#host(service, instance));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    server.unref();
    const { port } = server.address() as AddressInfo;
    server.prependListener('request', (_request, response) => {
      if (this.#store.read(service.spec.identity.serviceId)?.stopped === false) return;
      response.destroy();
      this.close(port);
    });
    this.#servers.set(port, server);
    return port;
  }

  /** Closes a server: requests under way are answered, new ones are not accepted. */
  close(port: number): void {
    const server = this.#servers.get(port);
    this.#servers.delete(port);
    server?.close();
    server?.closeIdleConnections();
  }

  closeAll(): void {
    for (const port of this.#servers.keys()) this.close(port);
  }

  #host(service: FakeService, instance: FakeInstance): ApplicationHost {
    const { spec } = service;
    const image = this.#store.readImage(spec.image);
    const stored = () => this.#store.read(spec.identity.serviceId) ?? service;
    const find = () => stored().instances.find(({ name }) => name === instance.name) ?? instance;
    const written: Record<string, string> = {};
    const mounted = (path: string) => spec.storage.some(({ mountPath }) => path.startsWith(`${mountPath}/`));
    return {
      environment: { ...image?.environment, ...spec.environment },
      hostname: spec.hostname,
      get process() {
        return find().process;
      },
      readFile: (name) => {
        const path = resolve(image?.folder ?? '/', name);
        const file = spec.files.find((entry) => entry.path === path)?.content;
        const text =
          file ?? this.#store.readStorage(spec.identity.serviceId)[path] ?? written[path] ?? image?.files[path];
        if (text === undefined) throw new Error(`ENOENT: no such file: ${path}`);
        return text;
      },
      writeFile: (name, text) => {
        const path = resolve(image?.folder ?? '/', name);
        if (spec.files.some((entry) => entry.path === path)) throw new Error(`EROFS: read-only file: ${path}`);
        if (!mounted(path)) written[path] = text;
        else
          this.#store.writeStorage(spec.identity.serviceId, {
            ...this.#store.readStorage(spec.identity.serviceId),
            [path]: text,
          });
      },
      log: (text, stream) => writeLog(this.#store, service, instance.name, text, stream),
      exit: (code) => this.#exit(service, instance.name, code),
    };
  }

  /** Ends the pretended process and starts a new one in its place at once. */
  #exit(service: FakeService, name: string, code: number): void {
    const stored = this.#store.read(service.spec.identity.serviceId);
    if (!stored || stored.stopped) return;
    const again = (instance: FakeInstance): FakeInstance => ({
      ...instance,
      lastExit: { code, signal: null, reason: `ended with status ${code}`, at: now() },
      restarts: instance.restarts + 1,
      process: crypto.randomUUID(),
      previousStartedAt: instance.startedAt,
      startedAt: now(),
    });
    const instances = stored.instances.map((instance) => (instance.name === name ? again(instance) : instance));
    this.#store.write({ ...stored, instances });
    writeLog(this.#store, service, name, `ended with status ${code}, started again`);
  }
}

/** Returns the addresses of a service's servers. */
export const upstreamsOf = (service: FakeService): Upstream[] =>
  service.instances.flatMap(({ port }) => (port === null ? [] : [{ address: '127.0.0.1', port }]));

export function routesOf(service: FakeService): RouteEntry[] {
  return service.spec.routes.flatMap(({ host, portId, certificate }) => {
    const port = service.spec.ports.find((entry) => entry.id === portId);
    if (!port) return [];
    const protocol = port.protocol === 'GRPC' ? 'GRPC' : 'HTTP';
    return [{ host, protocol, upstreams: upstreamsOf(service), ...(certificate ? { certificate } : {}) }];
  });
}

export const nameOf = ({ identity }: WorkloadSpec, number: number): string =>
  `${identity.serviceId.slice(0, 8)}-${identity.generation}-${number}`;

export const newInstance = (name: string): FakeInstance => ({
  name,
  process: crypto.randomUUID(),
  startedAt: now(),
  restarts: 0,
  lastExit: null,
  port: null,
});
