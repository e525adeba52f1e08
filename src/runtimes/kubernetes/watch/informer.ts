import { setTimeout as sleep } from 'node:timers/promises';
import { anySignal } from '#kernel/lease-signal.ts';
import { pathOf, type Cluster, type Kind } from '../cluster.ts';
import { ApiError } from '../errors.ts';
import type { ClusterObject } from '../kinds.ts';
import { LABEL } from '../labels.ts';
import { METADATA_LIST, readPages } from '../pages.ts';
import { BadEvent, readEvents } from './events.ts';

/** Objects in a page of a list; of metadata alone several times as many. */
const PAGE = 50;
const PAGE_OF_METADATA = 250;
/** Objects of one kind that are kept; a cluster with more is looked at service by service. */
const MOST_OBJECTS = 100_000;
/** Seconds after which the server ends a watch; up to as many more by chance, so that not all end at once. */
const WATCH_SECONDS = 240;
/** Milliseconds without a byte after which a watch is opened anew. The server sends a bookmark about each minute. */
const IDLE_MS = 90_000;
/** Milliseconds between attempts: doubled with each failure, with up to half of it by chance. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/** Answers that say nothing of the version that was asked for: of rights, of limits, of an outage. */
const PASSING = [401, 403, 429, 500, 502, 503];
/** Milliseconds after which an open watch counts as steady, so that a failure begins with the shortest pause. */
const STEADY_MS = 5_000;
/** Milliseconds that a watch lasts at least where the server ends it in order: one that ends sooner is opened again as after a failure. */
const SHORTEST_MS = 1_000;
/** Milliseconds over which new lists are spread after the server has forgotten a version. */
const SPREAD_MS = 3_000;

export interface InformerOptions<T> {
  kind: Kind;
  /** True if only names, labels and owners of fields are read. */
  isMetadata?: boolean;
  /** Called with each object as the cluster tells it. */
  seen?(object: ClusterObject): void;
  /** Returns what is kept of an object; null for an object that counts as gone. */
  reduce(object: ClusterObject): T | null;
  /** Called for each service of which an object has come, changed or gone. */
  changed(serviceId: string): void;
  /** Called when the informer becomes current, and with the reason when it is no longer. */
  turned(reason: string | null): void;
  /** Replaces the times, for tests. */
  times?: Partial<InformerTimes>;
}

export interface InformerTimes {
  idleMs: number;
  firstPauseMs: number;
  shortestMs: number;
  steadyMs: number;
  spreadMs: number;
}

interface Kept<T> {
  serviceId: string;
  value: T;
}

/**
 * Keeps the installation's objects of one kind, of the whole cluster, by list and watch. Level-triggered: after any failure it goes on from
 * the last version, or lists again.
 */
export class Informer<T> {
  readonly #cluster: Cluster;
  readonly #options: InformerOptions<T>;
  readonly #times: InformerTimes;
  readonly #objects = new Map<string, Kept<T>>();
  readonly #services = new Map<string, Map<string, T>>();
  #version: string | null = null;
  #isCurrent = false;
  #failures = 0;
  #present = new AbortController();

  constructor(cluster: Cluster, options: InformerOptions<T>) {
    this.#cluster = cluster;
    this.#options = options;
    this.#times = {
      idleMs: IDLE_MS,
      firstPauseMs: FIRST_PAUSE_MS,
      shortestMs: SHORTEST_MS,
      steadyMs: STEADY_MS,
      spreadMs: SPREAD_MS,
      ...options.times,
    };
  }

  /** True while what is kept follows the cluster: false from a failure until the watch is open again. */
  get isCurrent(): boolean {
    return this.#isCurrent;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Returns what is kept of an object that has the label of a service; null if nothing is. */
  get(serviceId: string, namespace: string, name: string): T | null {
    return this.#services.get(serviceId)?.get(`${namespace}/${name}`) ?? null;
  }

  has(serviceId: string): boolean {
    return this.#services.has(serviceId);
  }

  /** Returns what is kept of a service in its namespace: labels alone could be anyone's. */
  of(serviceId: string, namespace: string): T[] {
    const kept = [...(this.#services.get(serviceId) ?? [])];
    return kept.filter(([key]) => key.startsWith(`${namespace}/`)).map(([, value]) => value);
  }

  /** Opens the watch anew: the cluster did not answer something else. */
  doubt(): void {
    this.#present.abort(new Error('the cluster does not answer'));
  }

  /** Lists anew: the connection leads elsewhere. */
  restart(): void {
    this.#present.abort(new BadEvent('its connection was replaced'));
  }

  /** Lists and watches until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#version === null) await this.#list(signal);
        else await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#rest(error, signal);
      }
    }
  }

  /** Forgets the version where the server has, and waits before the next attempt. */
  async #rest(error: unknown, signal: AbortSignal): Promise<void> {
    this.#turn(error instanceof Error ? error.message : String(error));
    const isForgotten = error instanceof ApiError && error.status === 410;
    // After an outage the same version goes on: nothing is listed anew. Otherwise the same would come again.
    const isRefused = error instanceof ApiError && !PASSING.includes(error.status);
    if (isRefused || error instanceof BadEvent) this.#version = null;
    const { firstPauseMs, spreadMs } = this.#times;
    const pause = Math.min(firstPauseMs * 2 ** Math.min(this.#failures++, 10), LONGEST_PAUSE_MS);
    const ms = isForgotten && this.#failures === 1 ? Math.random() * spreadMs : pause * (0.5 + Math.random() / 2);
    await sleep(ms, undefined, { signal }).catch(() => undefined);
  }

  #turn(reason: string | null): void {
    const isCurrent = reason === null;
    if (isCurrent !== this.#isCurrent || (!isCurrent && this.#failures === 0)) {
      this.#isCurrent = isCurrent;
      this.#options.turned(reason);
    }
  }

  get #accept(): string {
    return this.#options.isMetadata
      ? 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
      : 'application/json';
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { kind, isMetadata = false } = this.#options;
    const found = new Set<string>();
    let version: string | undefined;
    let read = 0;
    const pages = readPages(this.#cluster.connection, pathOf(kind), {
      labelSelector: this.#selector,
      limit: isMetadata ? PAGE_OF_METADATA : PAGE,
      accept: isMetadata ? METADATA_LIST : this.#accept,
      signal,
    });
    // An object that is too large to be read counts as gone: only its own service is looked at directly.
    for await (const { items, metadata } of pages) {
      for (const object of items) found.add(this.#put(object));
      // A page without objects counts as well: a list of such pages must have an end.
      read += Math.max(1, items.length);
      if (read > MOST_OBJECTS) throw new Error(`it has more than ${MOST_OBJECTS} objects of the kind ${kind}`);
      version = metadata.resourceVersion;
    }
    for (const key of this.#objects.keys()) if (!found.has(key)) this.#drop(key);
    if (typeof version !== 'string') throw new Error('its list has no version');
    this.#version = version;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    this.#present = new AbortController();
    const { idleMs } = this.#times;
    const idle = setTimeout(
      () => this.#present.abort(new Error(`its watch was silent for ${idleMs / 1000} s`)),
      idleMs,
    );
    let opened = Infinity;
    try {
      const query = {
        labelSelector: this.#selector,
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion: this.#version!,
        timeoutSeconds: Math.round(WATCH_SECONDS * (1 + Math.random())),
      };
      const ended = anySignal([signal, this.#present.signal]);
      const accept = this.#accept;
      const stream = await this.#cluster.connection.stream(pathOf(this.#options.kind), {
        query,
        signal: ended,
        accept,
      });
      opened = performance.now();
      this.#turn(null);
      for await (const { type, object } of readEvents(stream, () => idle.refresh())) {
        if (type === 'DELETED') this.#drop(keyOf(object));
        else if (type !== 'BOOKMARK') this.#put(object);
        this.#version = object.metadata.resourceVersion!;
      }
      if (performance.now() - opened < this.#times.shortestMs) throw new Error('it ended its watch at once');
    } finally {
      if (performance.now() - opened >= this.#times.steadyMs) this.#failures = 0;
      clearTimeout(idle);
    }
  }

  get #selector(): string {
    return `${LABEL.installation}=${this.#cluster.installation}`;
  }

  #put(object: ClusterObject): string {
    const key = keyOf(object);
    const serviceId = object.metadata.labels?.[LABEL.service];
    const value = serviceId === undefined ? null : this.#reduce(object);
    const before = this.#objects.get(key);
    if (before && (value === null || before.serviceId !== serviceId)) this.#drop(key);
    if (value === null || serviceId === undefined) return key;
    // Events of what is not kept, such as the times of conditions, wake nobody.
    if (before && JSON.stringify(before.value) === JSON.stringify(value)) return key;
    this.#objects.set(key, { serviceId, value });
    const ofService = this.#services.get(serviceId) ?? new Map<string, T>();
    this.#services.set(serviceId, ofService.set(key, value));
    this.#options.changed(serviceId);
    return key;
  }

  /** Throws BadEvent for an object that is not of its kind. */
  #reduce(object: ClusterObject): T | null {
    try {
      this.#options.seen?.(object);
      return this.#options.reduce(object);
    } catch (cause) {
      throw new BadEvent(`it answers an object that is no ${this.#options.kind}`, { cause });
    }
  }

  #drop(key: string): void {
    const before = this.#objects.get(key);
    if (!before) return;
    this.#objects.delete(key);
    const ofService = this.#services.get(before.serviceId);
    ofService?.delete(key);
    if (ofService?.size === 0) this.#services.delete(before.serviceId);
    this.#options.changed(before.serviceId);
  }
}

function keyOf({ metadata }: ClusterObject): string {
  if (typeof metadata?.name !== 'string') throw new BadEvent('it answers objects without a name');
  return `${metadata.namespace}/${metadata.name}`;
}
