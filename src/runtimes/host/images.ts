import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson } from '#kernel/private-files.ts';
import { removeTree } from '#runtimes/host/remove-tree.ts';
import { removeAbandoned } from '#runtimes/tools/work-folders.ts';
import { RuntimeError, type Probe } from '#runtimes/runtime.ts';

/** Settings of a Dockerfile for running its program. */
export interface ImageConfig {
  env: Record<string, string>;
  workdir: string;
  entrypoint: string[];
  command: string[];
  /** Ports of EXPOSE. */
  ports: number[];
  /** Check of HEALTHCHECK, used as readiness if the service defines none. */
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

/** Store of the images of all services: `<dataDir>/images/<service>/<key>`. Their reference is `host:<service>/<key>`. */
export class ImageStore {
  readonly #directory: string;

  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'images');
  }

  reference(serviceId: string, cacheKey: string): string {
    const key = createHash('sha256').update(cacheKey).digest('hex').slice(0, 32);
    return `host:${serviceId}/${key}`;
  }

  /** Returns the folder of a reference; null if this runtime did not build it. */
  folder(reference: string): string | null {
    const match = /^host:([0-9a-z-]+)\/([0-9a-f]{32})$/.exec(reference);
    return match ? join(this.#directory, match[1]!, match[2]!) : null;
  }

  /** Returns the record of an image; null if it does not exist. */
  find(reference: string): ImageRecord | null {
    const folder = this.folder(reference);
    return folder === null ? null : readJson<ImageRecord>(join(folder, 'image.json'));
  }

  /** Returns record and folder of an image. Throws RuntimeError `failed` if it does not exist. */
  get(reference: string): { folder: string; record: ImageRecord } {
    const record = this.find(reference);
    if (!record)
      throw new RuntimeError('failed', `The image ${reference} is not on this machine any more; deploy again.`);
    return { folder: this.folder(reference)!, record };
  }

  /** Removes images of a service; references to another service's images are ignored. */
  remove(serviceId: string, references: readonly string[]): void {
    for (const reference of references) {
      const folder = this.folder(reference);
      if (folder && dirname(folder) === join(this.#directory, serviceId)) removeTree(folder);
    }
    const folder = join(this.#directory, serviceId);
    if (existsSync(folder) && readdirSync(folder).length === 0) removeTree(folder);
  }

  /** Removes all images of a service, and the remains of interrupted builds. */
  removeAll(serviceId: string): void {
    removeTree(join(this.#directory, serviceId));
  }

  /** Removes unfinished images of builds whose process is gone. */
  removeBroken(): void {
    if (!existsSync(this.#directory)) return;
    for (const serviceId of readdirSync(this.#directory)) removeAbandoned(join(this.#directory, serviceId), removeTree);
  }
}
