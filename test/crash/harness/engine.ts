import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer, json } from 'node:stream/consumers';
import { createServer } from '#kernel/node-http.ts';
import { LABEL } from '#runtimes/docker/labels.ts';

/** Call of an engine that a test can leave unanswered. */
export type EngineCall = 'build' | 'create' | 'start' | 'inspect' | 'stop' | 'connect';

interface Container {
  Id: string;
  Name: string;
  Image: string;
  Config: { Labels: Record<string, string>; Env: string[]; Image: string };
  HostConfig: object;
  state: 'created' | 'running' | 'exited';
  startedAt: string;
  finishedAt: string;
  /** Aliases by network. */
  networks: Record<string, { Aliases: string[] | null }>;
}

interface Network {
  Id: string;
  Name: string;
  Labels: Record<string, string>;
  IPAM: { Config: { Subnet: string }[] };
}

interface Image {
  Id: string;
  tag: string;
  Labels: Record<string, string>;
}

const NEVER = '0001-01-01T00:00:00Z';

/** Status and body of an answer; undefined for an unknown call. */
type Answer = [status: number, body?: unknown] | undefined;

/**
 * Container engine that runs nothing and remembers everything: the part of Docker's API (1.38, with the classic builder) by which an
 * application is built, started, observed, stopped and removed. It takes the calls that `hang` names and leaves them unanswered.
 */
export class StandInEngine implements AsyncDisposable {
  readonly containers = new Map<string, Container>();
  readonly networks = new Map<string, Network>();
  readonly images = new Map<string, Image>();
  /** Descriptions of moments without a serving instance of a service that should not be stopped. */
  readonly gaps: string[] = [];
  /** Number of unanswered calls, by call and service. */
  readonly #hung = new Map<string, number>();
  /** Continuations of the unanswered calls. */
  readonly #late: (() => void)[] = [];
  readonly #mayStop = new Set<string>();
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  private constructor() {}

  static async start(socketPath: string): Promise<StandInEngine> {
    const engine = new StandInEngine();
    await new Promise<void>((resolve) => engine.#server.listen(socketPath, resolve));
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Leaves a call unanswered from now on, for one service. */
  hang(call: EngineCall, serviceId: string): void {
    this.#hung.set(`${call} ${serviceId}`, 0);
  }

  /** Returns the number of calls that `hang` has left unanswered. */
  unanswered(call: EngineCall, serviceId: string): number {
    return this.#hung.get(`${call} ${serviceId}`) ?? 0;
  }

  /** Announces that a service is about to be stopped on purpose, which is no gap. */
  mayStop(serviceId: string): void {
    this.#mayStop.add(serviceId);
  }

  /** Ends the effect of `hang`. Unanswered calls take effect now, late, unless their clients are gone. */
  answerAgain(): void {
    this.#hung.clear();
    for (const answer of this.#late.splice(0)) answer();
  }

  #of(serviceId: string): Container[] {
    return [...this.containers.values()].filter(({ Config }) => Config.Labels[LABEL.service] === serviceId);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url!, 'http://engine');
    const path = url.pathname.replace(/^\/v[\d.]+/, '');
    const route = `${request.method} ${path}`;
    const isJson = request.headers['content-type']?.startsWith('application/json') ?? false;
    const body: any = isJson ? await json(request).catch(() => ({})) : (await buffer(request), {});
    const find = () => this.#named(/^\/containers\/([^/]+)/.exec(path)?.[1] ?? body.Container);
    if (this.#isHung(route, url, body, find())) await new Promise<void>((resolve) => this.#late.push(resolve));
    // The client of a late answer may be gone.
    if (response.destroyed) return;
    const container = find();
    const [status, answer] = this.#system(route) ??
      this.#image(route, path, url) ??
      this.#network(route, path, body, container) ??
      this.#container(route, url, body, container) ?? [404, { message: `no such object: ${route}` }];
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(answer === undefined ? '' : JSON.stringify(answer));
  }

  /** Counts the call if `hang` names it. */
  #isHung(route: string, url: URL, body: any, container: Container | undefined): boolean {
    const call = CALLS.find(([pattern]) => pattern.test(route))?.[1];
    const labels = container?.Config.Labels ?? body.Labels ?? JSON.parse(url.searchParams.get('labels') ?? '{}');
    const key = `${call} ${labels[LABEL.service]}`;
    const count = this.#hung.get(key);
    if (count !== undefined) this.#hung.set(key, count + 1);
    return count !== undefined;
  }

  #named(name: string | undefined): Container | undefined {
    const known = name && decodeURIComponent(name);
    return known === undefined
      ? undefined
      : [...this.containers.values()].find(({ Id, Name }) => Id === known || Name === `/${known}`);
  }

  #system(route: string): Answer {
    switch (route) {
      case 'GET /_ping':
        return [200, 'OK'];
      case 'GET /version':
        return [200, { Version: '18.06.3', ApiVersion: '1.38', Arch: 'amd64' }];
      case 'GET /info':
        return [200, { NCPU: 2, OSType: 'linux', SecurityOptions: [] }];
      case 'GET /events':
        return [200];
      case 'GET /volumes':
        return [200, { Volumes: [] }];
      case 'GET /system/df':
        return [200, { Images: [], Containers: [], Volumes: [] }];
      default:
        return undefined;
    }
  }

  #image(route: string, path: string, url: URL): Answer {
    if (route === 'GET /images/json') return [200, labelled(this.images, url).map(toImage)];
    if (route === 'POST /build') {
      const tag = url.searchParams.get('t')!;
      const Labels = JSON.parse(url.searchParams.get('labels') ?? '{}') as Image['Labels'];
      const Id = `sha256:${createHash('sha256').update(tag).digest('hex')}`;
      this.images.set(Id, { Id, tag, Labels });
      return [200, { stream: `Successfully tagged ${tag}\n` }];
    }
    const [, name, part] = /^\/images\/(.+?)(\/json)?$/.exec(path) ?? [];
    if (name === undefined) return undefined;
    const known = decodeURIComponent(name);
    const image = [...this.images.values()].find(({ Id, tag }) => Id === known || tag === known);
    if (!image) return [404, { message: `no such image: ${known}` }];
    if (part) return [200, toImage(image)];
    this.images.delete(image.Id);
    return [200, []];
  }

  #network(route: string, path: string, body: any, container: Container | undefined): Answer {
    if (route === 'GET /networks') return [200, [...this.networks.values()]];
    if (route === 'POST /networks/create') {
      const Id = randomUUID();
      this.networks.set(Id, { Id, Name: body.Name, Labels: body.Labels, IPAM: { Config: body.IPAM.Config } });
      return [201, { Id }];
    }
    const [, name, part] = /^\/networks\/([^/]+)(?:\/(connect|disconnect))?$/.exec(path) ?? [];
    const network = [...this.networks.values()].find(({ Id, Name }) => Id === name || Name === name);
    if (!network) return undefined;
    if (part && !container) return [404, { message: 'no such container' }];
    if (part === 'connect') container!.networks[network.Name] = { Aliases: body.EndpointConfig.Aliases };
    // A rollout disconnects for a moment to give other aliases: that is no gap.
    if (part === 'disconnect') delete container!.networks[network.Name];
    if (route.startsWith('DELETE')) this.networks.delete(network.Id);
    return [200, network];
  }

  #container(route: string, url: URL, body: any, container: Container | undefined): Answer {
    if (route === 'GET /containers/json') return [200, labelled(this.containers, url).map(toListed)];
    if (route === 'POST /containers/create') return this.#create(url.searchParams.get('name'), body);
    if (!container) return undefined;
    if (route.startsWith('DELETE')) {
      this.#noteEnd(container);
      this.containers.delete(container.Id);
      return [204];
    }
    switch (route.split('/').at(-1)) {
      case 'json':
        return [200, toInspected(container)];
      case 'start':
        if (container.state === 'running') return [304];
        Object.assign(container, { state: 'running', startedAt: new Date().toISOString() });
        return [204];
      case 'stop':
        if (container.state !== 'running') return [304];
        this.#noteEnd(container);
        Object.assign(container, { state: 'exited', finishedAt: new Date().toISOString() });
        return [204];
      case 'wait':
        return [200, { StatusCode: 0 }];
      case 'logs':
        return [200];
      default:
        return undefined;
    }
  }

  #create(name: string | null, body: any): Answer {
    if (this.#named(name ?? undefined)) return [409, { message: `Conflict. The name ${name} is in use.` }];
    const Id = createHash('sha256').update(randomUUID()).digest('hex');
    const networks = Object.keys(body.NetworkingConfig?.EndpointsConfig ?? {}).map((key) => [key, { Aliases: null }]);
    this.containers.set(Id, {
      Id,
      Name: `/${name ?? Id.slice(0, 12)}`,
      Image: body.Image,
      Config: { Labels: body.Labels ?? {}, Env: body.Env ?? [], Image: body.Image },
      HostConfig: body.HostConfig,
      state: 'created',
      startedAt: NEVER,
      finishedAt: NEVER,
      networks: Object.fromEntries(networks),
    });
    return [201, { Id, Warnings: [] }];
  }

  /** Notes a gap if the last serving instance of a service ends unasked. */
  #noteEnd(container: Container): void {
    const serviceId = container.Config.Labels[LABEL.service];
    if (serviceId === undefined || this.#mayStop.has(serviceId) || !serves(container)) return;
    if (!this.#of(serviceId).some((other) => other !== container && serves(other)))
      this.gaps.push(`${container.Name} of ${serviceId} ended while nothing else served`);
  }
}

const CALLS: [RegExp, EngineCall][] = [
  [/^POST \/build$/, 'build'],
  [/^POST \/containers\/create$/, 'create'],
  [/^POST \/containers\/[^/]+\/start$/, 'start'],
  [/^GET \/containers\/[^/]+\/json$/, 'inspect'],
  [/^POST \/containers\/[^/]+\/stop$/, 'stop'],
  [/^POST \/networks\/[^/]+\/connect$/, 'connect'],
];

/** Returns whether the instance runs and siblings resolve the service's name to it. */
const serves = ({ state, networks }: Container): boolean =>
  state === 'running' && Object.values(networks).some(({ Aliases }) => Aliases !== null && Aliases.length > 0);

/** Returns the objects that the filters of a list ask for. */
function labelled<T extends { Labels?: Record<string, string>; Config?: Container['Config'] }>(
  objects: Map<string, T>,
  url: URL,
): T[] {
  const { label = [], network } = JSON.parse(url.searchParams.get('filters') ?? '{}') as Record<string, string[]>;
  return [...objects.values()].filter((object) => {
    const labels = object.Labels ?? object.Config?.Labels ?? {};
    const isThere = (name: string) => name in ((object as Partial<Container>).networks ?? {});
    return (
      label.every((one) => labels[one.slice(0, one.indexOf('='))] === one.slice(one.indexOf('=') + 1)) &&
      (network?.some(isThere) ?? true)
    );
  });
}

const toImage = ({ Id, tag, Labels }: Image) => ({ Id, RepoTags: [tag], Size: 1, Labels, Config: { Labels } });

const toListed = ({ Id, Name, Image, Config, state }: Container) => ({
  Id,
  Image,
  Names: [Name],
  Labels: Config.Labels,
  State: state,
  Ports: [],
  Created: Math.floor(Date.now() / 1000),
});

const toInspected = ({ Id, Name, Image, Config, HostConfig, state, startedAt, finishedAt, networks }: Container) => ({
  Id,
  Name,
  Image,
  Config,
  HostConfig,
  RestartCount: 0,
  Mounts: [],
  State: {
    Status: state,
    Running: state === 'running',
    Restarting: false,
    Paused: false,
    Dead: false,
    OOMKilled: false,
    ExitCode: 0,
    StartedAt: startedAt,
    FinishedAt: finishedAt,
  },
  NetworkSettings: { Networks: networks },
});
