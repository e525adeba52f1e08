import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { HostParts } from '#runtimes/host/host-parts.ts';
import { instanceName } from '#runtimes/host/layout.ts';
import { readTask } from '#runtimes/host/task-record.ts';
import { serviceOfVolume } from '#runtimes/host/volumes.ts';
import type { DiskItem, DiskUse } from '#runtimes/runtime.ts';
import { TreeMeter, type TreeSize } from '#runtimes/tools/disk-walk/index.ts';

/** Folders that an instance or an execution writes to: the upper layer of its view, or its tree. */
const WRITTEN = ['upper', 'tree'];
/** Working folder of overlayfs, which is empty while no file is being copied. */
const WORKING = 'work';

/** Disk item with the paths that it consists of. */
interface Thing extends Pick<DiskItem, 'kind' | 'serviceId' | 'name'> {
  paths: string[];
  /** Image that its tree is a copy of. */
  copyOf?: string;
}

/** Measures the runtime's files in the data directory. */
export class HostDisk {
  readonly #parts: HostParts;
  readonly #meter: TreeMeter;

  constructor(parts: HostParts) {
    this.#parts = parts;
    const { mode, asRoot, tools } = parts.machine;
    // An ordinary user's instances may close folders to the account that they share with us, but not to the root of a user namespace.
    const isClosed = mode === 'namespaces' && !asRoot;
    this.#meter = new TreeMeter(isClosed ? { prefix: [tools.unshare, '--user', '--map-root-user', '--'] } : {});
  }

  async measure(signal: AbortSignal): Promise<DiskUse> {
    const things = [...this.#images(), ...this.#volumes(), ...this.#workloads()];
    const shared = this.#shared();
    const trees = things.map((thing) => ({ key: keyOf(thing), paths: thing.paths }));
    const sizes = await this.#meter.measure([...trees, { key: 'shared', paths: shared }], signal);
    const items = [...things.flatMap((thing) => itemOf(thing, sizes)), ...(await this.#parts.formerLogs.diskItems())];
    const sum = (...kinds: DiskItem['kind'][]) =>
      items.filter(({ kind }) => kinds.includes(kind)).reduce((total, { bytes }) => total + bytes, 0);
    return {
      images: sum('image'),
      volumes: sum('volume'),
      workloads: sum('instance', 'task', 'log') + (sizes.get('shared')?.bytes ?? 0),
      buildCache: 0,
      items,
    };
  }

  #images(): Thing[] {
    const folder = join(this.#parts.layout.dataDir, 'images');
    return namesIn(folder).flatMap((serviceId) =>
      namesIn(join(folder, serviceId)).map((key) => ({
        kind: 'image' as const,
        serviceId,
        name: `host:${serviceId}/${key}`,
        paths: [join(folder, serviceId, key)],
      })),
    );
  }

  #volumes(): Thing[] {
    const { layout } = this.#parts;
    return layout.volumes().flatMap((name) => {
      const serviceId = serviceOfVolume(layout, name);
      return serviceId === null ? [] : [{ kind: 'volume', serviceId, name, paths: [layout.volume(name)] }];
    });
  }

  #workloads(): Thing[] {
    const { layout, releases } = this.#parts;
    return layout.services().flatMap((serviceId) => {
      const instances = layout.instances(serviceId).flatMap((at) => {
        const image = releases.read(serviceId, at.generation)?.image;
        return thingsIn(layout.instance(at), { kind: 'instance', serviceId, name: instanceName(at) }, image);
      });
      const tasks = layout.tasks(serviceId).flatMap((key) => {
        const folder = layout.task(serviceId, key);
        const task = readTask(folder);
        return thingsIn(folder, { kind: 'task', serviceId, name: task?.name ?? key }, task?.image);
      });
      return [...instances, ...tasks];
    });
  }

  /** Returns the folders that no single service owns: networks, and the layer of the machine's folders. */
  #shared(): string[] {
    const folder = join(this.#parts.layout.dataDir, 'host');
    return namesIn(folder)
      .filter((name) => name !== 'services')
      .map((name) => join(folder, name));
  }
}

/** Returns two items of an instance or an execution: its written files and its log. */
function thingsIn(folder: string, thing: Omit<Thing, 'paths'>, image: string | undefined): Thing[] {
  const names = namesIn(folder).filter((name) => name !== WORKING);
  const [written, others] = [true, false].map((is) => names.filter((name) => WRITTEN.includes(name) === is));
  const paths = (of: string[]) => of.map((name) => join(folder, name));
  const copyOf = written!.includes('tree') && image !== undefined ? { copyOf: image } : {};
  return [
    { ...thing, ...copyOf, paths: paths(written!) },
    { ...thing, kind: 'log', paths: paths(others!) },
  ];
}

const keyOf = ({ kind, serviceId, name }: Pick<DiskItem, 'kind' | 'serviceId' | 'name'>): string =>
  `${kind} ${serviceId} ${name}`;

function itemOf(thing: Thing, sizes: ReadonlyMap<string, TreeSize>): DiskItem[] {
  const size = sizes.get(keyOf(thing));
  if (!size) return [];
  const { kind, serviceId, name, copyOf } = thing;
  const copied = copyOf === undefined ? 0 : (sizes.get(keyOf({ kind: 'image', serviceId, name: copyOf }))?.bytes ?? 0);
  return [{ kind, serviceId, name, bytes: Math.max(0, size.bytes - copied), isWhole: size.isWhole }];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}
