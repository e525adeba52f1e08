/** Disk that a runtime uses. */

/** Bytes on disk by purpose. */
export interface DiskUse {
  images: number;
  volumes: number;
  /** Trees and writable layers of instances, with their logs. */
  workloads: number;
  /** Layers that an engine keeps for later builds; no service owns them. */
  buildCache: number;
  /** Folder on this machine that all of this lies in, where that is not the data directory. */
  storage?: string;
  /** Disk use of the services. A measurement that runs out of time lacks some items: those keep their last known values. */
  items: DiskItem[];
}

/** Disk use of one item of a service: an image, a volume, an instance, an execution or a log. */
export interface DiskItem {
  kind: DiskItemKind;
  serviceId: string;
  /** Reference of the image, id of the storage, or name of the instance or execution. */
  name: string;
  bytes: number;
  /** True if the item was measured completely; otherwise `bytes` is a lower bound. */
  isWhole: boolean;
}

/** Kind of item. `instance` and `task` are the files that an instance or an execution wrote outside of its volumes and its log. */
export type DiskItemKind = 'image' | 'volume' | 'instance' | 'task' | 'log';

/** Limits of the caches of a runtime: build layers, and pulled images that nothing uses any longer. */
export interface CacheLimits {
  /** Bytes that the build cache may take; null for no limit. */
  buildCacheBytes: number | null;
  /** References of pulled images that stay although nothing runs from them. */
  keptImages: readonly string[];
  /** Minimum age in seconds before a pulled image may be removed. */
  pulledSeconds: number;
}
