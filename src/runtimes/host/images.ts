import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { removeAbandoned } from '#runtimes/host/work-folders.ts';
import { readJson } from '#runtimes/tools/shim/state.ts';
import { RuntimeError, type Probe } from '#runtimes/runtime.ts';

/** How a Dockerfile wants its program to be run. */
export interface ImageConfig {
  env: Record<string, string>;
  workdir: string;
  entrypoint: string[];
  command: string[];
  /** Ports of EXPOSE. */
  ports: number[];
  /** HEALTHCHECK, used as readiness where the service has none of its own. */
  health: Probe | null;
  stopSignal: NodeJS.Signals;
}

/** `image.json` of a built image. */
export interface ImageRecord {
  format: 1;
  mode: 'namespaces' | 'plain';
  /** Folders of the layers relative to the image's, the newest first (namespaces). */
  layers: string[];
  /** WORKDIRs of the Dockerfile: absolute paths that stand for folders of the tree (plain). */
  workdirs: string[];
  /** Account that the files belong to and instances run as (root only). */
  uid: number;
  config: ImageConfig;
}

/** Images of all services: `<dataDir>/images/<service>/<key>`. Their reference is `host:<service>/<key>`. */
export class ImageStore {
  readonly #directory: string;

  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'images');
  }

  reference(serviceId: string, cacheKey: string): string {
    const key = createHash('sha256').update(cacheKey).digest('hex').slice(0, 32);
    return `host:${serviceId}/${key}`;
  }

  /** Folder of a reference; null when it isn't one of ours. */
  folder(reference: string): string | null {
    const match = /^host:([0-9a-z-]+)\/([0-9a-f]{32})$/.exec(reference);
    return match ? join(this.#directory, match[1]!, match[2]!) : null;
  }

  /** Record of an image, null when it isn't there. */
  find(reference: string): ImageRecord | null {
    const folder = this.folder(reference);
    return folder === null ? null : readJson<ImageRecord>(join(folder, 'image.json'));
  }

  /** Record and folder of an image that must be there. Throws RuntimeError `failed`. */
  get(reference: string): { folder: string; record: ImageRecord } {
    const record = this.find(reference);
    if (!record)
      throw new RuntimeError('failed', `The image ${reference} is not on this machine any more; deploy again.`);
    return { folder: this.folder(reference)!, record };
  }

  /** Removes images of a service; those of another one are not touched. */
  remove(serviceId: string, references: readonly string[]): void {
    for (const reference of references) {
      const folder = this.folder(reference);
      if (folder && dirname(folder) === join(this.#directory, serviceId)) removeTree(folder);
    }
    const folder = join(this.#directory, serviceId);
    if (existsSync(folder) && readdirSync(folder).length === 0) removeTree(folder);
  }

  /** Removes all images of a service, and what interrupted builds left. */
  removeAll(serviceId: string): void {
    removeTree(join(this.#directory, serviceId));
  }

  /** Removes what builds of processes that are gone left half made. */
  removeBroken(): void {
    if (!existsSync(this.#directory)) return;
    for (const serviceId of readdirSync(this.#directory)) removeAbandoned(join(this.#directory, serviceId));
  }
}
