import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import type { KeptLog } from '#runtimes/former-log-store.ts';
import type { DiskItem, LogLine, LogOptions } from '#runtimes/runtime.ts';
import { newestLines, packLog, type EndedInstance } from '#runtimes/tools/packed-log.ts';

/** Limits of the logs that are kept of former instances. */
export interface FormerLogLimits {
  /** Hours after the end of an instance for which its log is kept; 0 keeps none. */
  hours: number;
  /** Bytes of the logs of one service, compressed; the oldest go early. */
  serviceBytes: number;
}

interface Options {
  limits: FormerLogLimits;
  /** Returns the folder of a service's logs. */
  folderOf(serviceId: string): string;
  /** Returns the services that may have such a folder. */
  services(): Promise<string[]> | string[];
  /** Receives lines for the operator. */
  log(line: string): void;
}

interface File {
  path: string;
  instance: string;
  endedAt: number;
  bytes: number;
  /** False while it is written, and if the process was killed meanwhile. */
  isWhole: boolean;
}

const HOUR_MS = 3_600_000;
const NAME = /^([\w.-]+)~[\w-]+\.log\.gz(\.new)?$/;

/** Logs of instances that have been removed, as compressed files of this machine. The time of a file is the end of its instance. */
export class FormerLogs {
  readonly #options: Options | null;
  /** Only one log is in memory at a time. */
  readonly #lock = new KeyedLock();

  /** `null` keeps no logs. */
  constructor(options: Options | null) {
    this.#options = options;
  }

  /**
   * Keeps the log of an instance that has ended; `read` returns its last lines. Repeated after a crash, it replaces what it kept. A failure
   * is told in a line, and never holds up the removal of the instance.
   */
  async keep(instance: EndedInstance, read: () => Promise<LogLine[]>, tell: (line: string) => void): Promise<void> {
    if (!this.#options || this.#options.limits.hours === 0) return;
    const folder = this.#options.folderOf(instance.serviceId);
    try {
      await this.#lock.run('', async () => writeLog(folder, instance, await read()));
      await this.#trim(instance.serviceId);
    } catch (error) {
      tell(`The log of ${instance.name} is not kept: ${(error as Error).message}`);
    }
  }

  /** Returns the newest lines of former instances, oldest first, as far as they are kept. */
  async read(serviceId: string, options: Omit<LogOptions, 'follow'>): Promise<LogLine[]> {
    const files = await this.#files(serviceId);
    const kept = files.filter((file) => file.isWhole && !this.#isOver(file)).map((file) => this.#keptIn(file));
    return newestLines(kept, options);
  }

  #keptIn({ path, instance, endedAt }: File): KeptLog {
    return {
      instance,
      endedAt,
      read: () => unlessGone(buffer(createReadStream(path))),
      isDamaged: async ({ message }) => {
        this.#options!.log(`${path} is damaged and was removed: ${message}`);
        await rm(path, { force: true });
      },
    };
  }

  /** Removes the logs of a service. */
  async remove(serviceId: string): Promise<void> {
    if (this.#options) await rm(this.#options.folderOf(serviceId), { recursive: true, force: true });
  }

  /** Removes what is kept for too long, of every service. */
  async sweep(): Promise<void> {
    for (const serviceId of await this.#services()) await this.#trim(serviceId);
  }

  /** Returns what the logs take on disk, by service. */
  async diskItems(): Promise<DiskItem[]> {
    const items: DiskItem[] = [];
    for (const serviceId of await this.#services()) {
      const bytes = (await this.#files(serviceId)).reduce((sum, file) => sum + file.bytes, 0);
      if (bytes > 0) items.push({ kind: 'log', serviceId, name: 'former instances', bytes, isWhole: true });
    }
    return items;
  }

  async #services(): Promise<string[]> {
    return (await this.#options?.services()) ?? [];
  }

  async #trim(serviceId: string): Promise<void> {
    let bytes = 0;
    for (const file of await this.#files(serviceId)) {
      bytes += file.bytes;
      if (this.#isOver(file) || bytes > this.#options!.limits.serviceBytes) await rm(file.path, { force: true });
    }
  }

  #isOver({ endedAt }: File): boolean {
    return endedAt < Date.now() - this.#options!.limits.hours * HOUR_MS;
  }

  /** Lists the logs of a service, the one that ended last first. */
  async #files(serviceId: string): Promise<File[]> {
    const folder = this.#options?.folderOf(serviceId);
    const files: File[] = [];
    if (folder === undefined) return files;
    for (const name of (await unlessGone(readdir(folder))) ?? []) {
      const path = join(folder, name);
      const stats = await unlessGone(stat(path));
      const [, instance, unfinished] = NAME.exec(name) ?? [];
      if (stats && instance !== undefined)
        files.push({
          path,
          instance,
          endedAt: stats.mtimeMs,
          bytes: stats.blocks * 512,
          isWhole: unfinished === undefined,
        });
    }
    return files.sort((one, other) => other.endedAt - one.endedAt);
  }
}

/** Writes a log as a whole file, or none. */
async function writeLog(folder: string, instance: EndedInstance, lines: LogLine[]): Promise<void> {
  if (lines.length === 0) return;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${instance.name}~${instance.key}.log.gz`);
  const content = await packLog(instance, lines);
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

/** Returns null where a file or folder is gone. */
async function unlessGone<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
