import { access, constants } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { DiskItem, DiskUse } from '#runtimes/runtime.ts';
import { TreeMeter, type TreeRequest, type TreeSize } from '#runtimes/tools/disk-walk/index.ts';
import { LOOPBACK } from './container-config.ts';
import { unless } from './errors.ts';
import { LABEL } from './labels.ts';
import type { DockerNode } from './node.ts';
import { pulledRepository } from './pull.ts';
import { findContainers, findVolumes, ours } from './search.ts';

/** Part of the engine's answer that counts; the client's types lack it, and that the request can be aborted. */
interface EngineUse {
  Images?: (Docker.ImageInfo & { SharedSize: number })[] | null;
  Volumes?: (Docker.VolumeInspectInfo & { UsageData?: { Size: number } | null })[] | null;
  Containers?: (Docker.ContainerInfo & { SizeRw?: number })[] | null;
  BuildCache?: { Size: number; Shared: boolean }[] | null;
}

/** Number of concurrent inspections. */
const AT_ONCE = 8;

/**
 * Measures the labelled objects of the installation and the images that it pulled. If this process can read the engine's storage, it walks
 * the trees itself, with low priority; otherwise the engine measures, which counts sparse files in full.
 */
export class DockerDisk {
  readonly #node: DockerNode;
  readonly #meter = new TreeMeter();
  /** Folders by container, which never change: the layer that it writes, and its log. */
  readonly #folders = new Map<string, { upper: string | null; log: string | null }>();

  constructor(node: DockerNode) {
    this.#node = node;
  }

  async measure(signal: AbortSignal): Promise<DiskUse> {
    const isOwn = await this.#readsStorage();
    const types = isOwn ? ['image', 'build-cache'] : ['image', 'build-cache', 'container', 'volume'];
    const use = await askEngine(this.#node.engine, types, signal);
    const containers = await findContainers(this.#node);
    const workloads = isOwn ? await this.#walk(containers, signal) : this.#told(use);
    const { images, items } = this.#images(use.Images ?? [], containers);
    const all = [...items, ...workloads, ...(await this.#node.formerLogs.diskItems())];
    const storage = await this.#storage();
    return {
      ...(storage === null ? {} : { storage }),
      images,
      volumes: sum(all.filter(({ kind }) => kind === 'volume')),
      workloads: sum(all.filter(({ kind }) => ['instance', 'task', 'log'].includes(kind))),
      buildCache: (use.BuildCache ?? []).reduce((total, part) => total + (part.Shared ? 0 : part.Size), 0),
      items: all,
    };
  }

  /** Returns the folder of the engine's storage; null for an engine on another machine. */
  async #storage(): Promise<string | null> {
    return this.#node.publishAddress === LOOPBACK ? (await this.#node.about()).storage : null;
  }

  async #readsStorage(): Promise<boolean> {
    const storage = await this.#storage();
    if (storage === null) return false;
    return Promise.all(
      ['overlay2', 'volumes'].map((name) => access(join(storage, name), constants.R_OK | constants.X_OK)),
    ).then(
      () => true,
      () => false,
    );
  }

  async #walk(containers: Docker.ContainerInfo[], signal: AbortSignal): Promise<DiskItem[]> {
    await this.#learnFolders(containers);
    const things = [
      ...containers.flatMap((container) => this.#containerThings(container)),
      ...(await findVolumes(this.#node, {})).flatMap((volume) =>
        volume.Labels[LABEL.storage] === undefined ? [] : [{ item: volumeItem(volume), paths: [volume.Mountpoint] }],
      ),
    ];
    const trees: TreeRequest[] = things.map(({ item, paths }) => ({ key: keyOf(item), paths }));
    const sizes = await this.#meter.measure(trees, signal);
    return things.flatMap(({ item }) => sized(item, sizes.get(keyOf(item))));
  }

  async #learnFolders(containers: Docker.ContainerInfo[]): Promise<void> {
    const ids = new Set(containers.map(({ Id: id }) => id));
    for (const id of this.#folders.keys()) if (!ids.has(id)) this.#folders.delete(id);
    const left = [...ids].filter((id) => !this.#folders.has(id)).values();
    const learnRest = async () => {
      for (const id of left) {
        const found = await unless([404], this.#node.engine.getContainer(id).inspect());
        if (!found) continue;
        const upper = (found.GraphDriver?.Data as { UpperDir?: string } | undefined)?.UpperDir ?? null;
        const log = found.LogPath ? dirname(found.LogPath) : null;
        this.#folders.set(id, { upper, log });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, learnRest));
  }

  #containerThings(container: Docker.ContainerInfo): { item: Unsized; paths: string[] }[] {
    const item = containerItem(container);
    const { upper, log } = this.#folders.get(container.Id) ?? { upper: null, log: null };
    return item === null
      ? []
      : [
          ...(upper === null ? [] : [{ item, paths: [upper] }]),
          ...(log === null ? [] : [{ item: { ...item, kind: 'log' as const }, paths: [log] }]),
        ];
  }

  /** Sizes of containers and volumes as the engine reports them; it does not report logs. */
  #told(use: EngineUse): DiskItem[] {
    const containers = ours(this.#node, {}, use.Containers ?? []).flatMap((container) => {
      const item = containerItem(container);
      return item === null ? [] : [{ ...item, bytes: container.SizeRw ?? 0, isWhole: true }];
    });
    const volumes = ours(this.#node, {}, use.Volumes ?? []).flatMap((volume) =>
      volume.Labels[LABEL.storage] === undefined
        ? []
        : [{ ...volumeItem(volume), bytes: Math.max(0, volume.UsageData?.Size ?? 0), isWhole: true }],
    );
    return [...containers, ...volumes];
  }

  /** Sums up built and pulled images. A pulled image counts for each organization that has a container of it. */
  #images(all: NonNullable<EngineUse['Images']>, containers: Docker.ContainerInfo[]) {
    const pulled = `${pulledRepository(this.#node.installation)}:`;
    const built = new Set(ours(this.#node, {}, all));
    const mine = all.filter((image) => built.has(image) || image.RepoTags?.some((name) => name.startsWith(pulled)));
    // Layers that images share (mostly the base) are counted once, with the largest of them.
    const shared = Math.max(0, ...mine.map((image) => image.SharedSize));
    const own = (image: (typeof mine)[number]) => image.Size - Math.max(0, image.SharedSize);
    const items = mine.flatMap((image) => {
      const users = containers.filter(({ ImageID: id }) => id === image.Id);
      const services = built.has(image)
        ? [image.Labels[LABEL.service]!]
        : firstOfEach(users, LABEL.organization).map(({ Labels: labels }) => labels[LABEL.service]!);
      // Others may share the layers of a base image; a pulled image counts in full for the services that run it.
      const bytes = built.has(image) ? own(image) : image.Size;
      return services.map((serviceId) => {
        return { kind: 'image' as const, serviceId, name: image.Id, bytes, isWhole: true };
      });
    });
    return { images: mine.reduce((total, image) => total + own(image), shared), items };
  }
}

type Unsized = Omit<DiskItem, 'bytes' | 'isWhole'>;

const keyOf = ({ kind, serviceId, name }: Unsized): string => `${kind} ${serviceId} ${name}`;

const sized = (item: Unsized, size: TreeSize | undefined): DiskItem[] =>
  size ? [{ ...item, bytes: size.bytes, isWhole: size.isWhole }] : [];

const sum = (items: DiskItem[]): number => items.reduce((total, { bytes }) => total + bytes, 0);

function firstOfEach(containers: Docker.ContainerInfo[], label: string): Docker.ContainerInfo[] {
  return [...new Map(containers.map((container) => [container.Labels[label], container])).values()];
}

/** Returns the instance or execution that a container belongs to; null for helpers. */
function containerItem({ Labels: labels, Names: names }: Docker.ContainerInfo): Unsized | null {
  const serviceId = labels[LABEL.service];
  if (serviceId === undefined) return null;
  const task = labels[LABEL.task];
  if (task !== undefined) return { kind: 'task', serviceId, name: task };
  if (labels[LABEL.instance] === undefined) return null;
  return { kind: 'instance', serviceId, name: names[0]?.slice(1) ?? '' };
}

const volumeItem = ({ Labels: labels }: Docker.VolumeInspectInfo): Unsized => ({
  kind: 'volume',
  serviceId: labels[LABEL.service]!,
  name: labels[LABEL.storage]!,
});

/** Milliseconds until an engine that measures already is asked again: releases before 23 measure for one caller at a time. */
const BUSY_MS = 250;

/** Asks the engine for disk use, limited to some types if the engine supports that (API 1.42). */
async function askEngine(engine: Docker, types: string[], signal: AbortSignal): Promise<EngineUse> {
  for (;;) {
    try {
      return await askOnce(engine, types, signal);
    } catch (error) {
      if (!/disk usage operation is already running/.test((error as Error).message)) throw error;
      await sleep(BUSY_MS, undefined, { signal });
    }
  }
}

function askOnce(engine: Docker, types: string[], abortSignal: AbortSignal): Promise<EngineUse> {
  const query = new URLSearchParams(types.map((type) => ['type', type]));
  return new Promise((resolve, reject) => {
    const call = { path: `/system/df?${query}`, method: 'GET', abortSignal, statusCodes: { 200: true } };
    engine.modem.dial(call as never, (error, answer) => (error ? reject(error) : resolve(answer as EngineUse)));
  });
}
