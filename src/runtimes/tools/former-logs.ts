import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { KeyedLock } from '#kernel/keyed-lock.ts';
import type { DiskItem, LogLine, LogOptions } from '#runtimes/runtime.ts';
import { charactersOf } from '#runtimes/tools/log-limits.ts';
import { earliestOf, isChosen, isWithin, later } from '#runtimes/tools/log-window.ts';

/** Limits of the logs that are kept of former instances. */
export interface FormerLogLimits {
  /** Hours after the end of an instance for which its log is kept; 0 keeps none. */
  hours: number;
  /** Bytes of the logs of one service, compressed; the oldest go early. */
  serviceBytes: number;
}

/** Instance that is about to be removed. */
export interface EndedInstance {
  serviceId: string;
  name: string;
  generation: number;
  /** Tells it from an earlier instance of the same name: letters and digits. */
  key: string;
  /** Start of its last run in ISO 8601; null if unknown. */
  lastRunFrom: string | null;
}

/** Limits of lines and characters of one log that is kept: the newest stay. */
export const MOST_KEPT = { lines: 100_000, characters: charactersOf(1) };

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
/** Bytes of a log that is unpacked: a file that holds more was not written here. */
const MOST_UNPACKED = 4 * MOST_KEPT.characters + 64 * MOST_KEPT.lines;
/** Characters of all logs that are read at once. */
const MOST_READ = charactersOf(1) * 8;
const NAME = /^([\w.-]+)~[\w-]+\.log\.gz(\.new)?$/;

const pack = promisify(gzip);
const unpack = promisify(gunzip);

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
    const earliest = earliestOf(options);
    const lines: LogLine[] = [];
    let characters = 0;
    for (const file of await this.#files(serviceId)) {
      options.signal.throwIfAborted();
      if (!file.isWhole || !isChosen(file.instance, options) || this.#isOver(file)) continue;
      if (earliest !== undefined && file.endedAt < Date.parse(earliest)) continue;
      const found = await this.#linesOf(file, { from: earliest, lastRun: options.previous ?? false });
      for (const line of found.slice(-options.tail)) {
        lines.push(line);
        characters += line.text.length;
      }
      if (characters > MOST_READ) break;
    }
    return lines.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0)).slice(-options.tail);
  }

  async #linesOf(file: File, { from, lastRun }: { from: string | undefined; lastRun: boolean }): Promise<LogLine[]> {
    const packed = await unlessGone(buffer(createReadStream(file.path)));
    if (packed === null) return [];
    let texts: string[];
    try {
      texts = (await unpack(packed, { maxOutputLength: MOST_UNPACKED })).toString().split('\n');
    } catch (error) {
      // The other logs are still of use.
      this.#options!.log(`${file.path} is damaged and was removed: ${(error as Error).message}`);
      await rm(file.path, { force: true });
      return [];
    }
    const { generation, lastRunFrom } = JSON.parse(texts[0]!) as Pick<EndedInstance, 'generation' | 'lastRunFrom'>;
    const window = { from: later(lastRun ? (lastRunFrom ?? undefined) : undefined, from) };
    return texts.slice(1).flatMap((line) => {
      const [at, stream, text] = JSON.parse(line) as [string, LogLine['stream'], string];
      return isWithin(at, window) ? [{ at, instance: file.instance, generation, stream, text }] : [];
    });
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
  const { name, generation, key, lastRunFrom } = instance;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${name}~${key}.log.gz`);
  const texts = lines.map(({ at, stream, text }) => JSON.stringify([at, stream, text]));
  const content = await pack([JSON.stringify({ generation, lastRunFrom }), ...texts].join('\n'));
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
