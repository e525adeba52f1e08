import { posix } from 'node:path';
import { once } from 'node:events';
import { extract, type Extract, type Header } from 'tar-stream';
import { shown } from '#kernel/parsing/archive-names.ts';

const TYPES = ['file', 'contiguous-file', 'directory', 'symlink', 'link', 'fifo'];

/**
 * Passes a tar archive of a volume on and checks its names as it goes by. Throws Error for what a volume cannot have: names that lead out
 * of it or through one of its links, devices, and hard links to files outside. Targets of symbolic links may be anything: they mean files
 * of whichever container opens them. The check may come some bytes later than the bytes.
 */
export async function* checkedTar(volume: string, archive: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const check = new TarCheck(volume);
  for await (const chunk of archive) {
    await check.write(chunk);
    yield chunk;
  }
  await check.end();
}

/** Reader of the names of a tar archive. */
export class TarCheck {
  readonly #volume: string;
  readonly #tar: Extract = extract();
  readonly #links = new Set<string>();
  #failure: Error | undefined;
  #isEnded = false;

  /** `refuse` throws Error for a header that must not be there. */
  constructor(volume: string, refuse: (header: Header) => void = () => undefined) {
    this.#volume = volume;
    this.#tar.on('entry', (header, content, next) => {
      content.on('error', () => undefined); // The archive has the same error.
      try {
        this.#look(header);
        refuse(header);
      } catch (error) {
        this.#tar.destroy(error as Error);
        return;
      }
      content.on('end', next);
      content.resume();
    });
    this.#tar.on('error', (error) => (this.#failure ??= error));
    this.#tar.on('finish', () => (this.#isEnded = true));
  }

  async write(chunk: Buffer): Promise<void> {
    this.#throwFailure();
    if (!this.#tar.write(chunk)) await this.#turn('drain');
    this.#throwFailure();
  }

  /** Reads the rest. Throws Error if the archive is cut off. */
  async end(): Promise<void> {
    this.#throwFailure();
    this.#tar.end(undefined);
    if (!this.#isEnded) await this.#turn('finish');
    this.#throwFailure();
  }

  /** Waits for an event, or for the end by an error. */
  async #turn(event: string): Promise<void> {
    const over = new AbortController();
    const { signal } = over;
    const events = this.#tar as unknown as NodeJS.EventEmitter;
    await Promise.race(
      [event, 'close'].map((name) => once(events, name, { signal }).catch(() => undefined)), // An error is kept above.
    );
    over.abort();
  }

  #throwFailure(): void {
    if (this.#failure)
      throw new Error(`The volume ${this.#volume}: ${this.#failure.message}.`, { cause: this.#failure });
  }

  #look({ name, type, linkname, pax }: Header): void {
    const own = (pax as Record<string, string> | null | undefined)?.['GNU.sparse.name'] ?? name;
    if (!TYPES.includes(type ?? ''))
      throw new Error(`${shown(name)} is no file, folder, link or named pipe (${type ?? 'unknown'}), remove it`);
    for (const one of [name, own]) this.#refuseOutside(one);
    if (type === 'link') this.#refuseOutside(linkname ?? '');
    if (type === 'symlink') this.#links.add(posix.normalize(own));
  }

  /** Throws Error for a name that leads out of the volume, directly or through a link that came before. */
  #refuseOutside(name: string): void {
    if (name === '' || name.startsWith('/') || name.split('/').includes('..') || name.includes('\0'))
      throw new Error(`${shown(name)} leads out of it`);
    for (let at = posix.dirname(posix.normalize(name)); at !== '.'; at = posix.dirname(at))
      if (this.#links.has(at)) throw new Error(`${shown(name)} leads through the link ${shown(at)}`);
  }
}
