import path from 'node:path';
import { readFileOf } from '#kernel/parsing/index.ts';
import type { Shape } from '#kernel/parsing/formats.ts';
import type { CheckoutFiles } from '#deployments/index.ts';

/** Files of a project, by paths from its root. Files of formats are parsed within the limits of their owner. */
export class ProjectFiles {
  readonly #files: CheckoutFiles;
  readonly #owner: string;
  readonly #root: string;
  readonly #texts = new Map<string, string>();
  #names: ReadonlySet<string> = new Set();

  private constructor(files: CheckoutFiles, owner: string, root: string) {
    this.#files = files;
    this.#owner = owner;
    this.#root = root;
  }

  /** Opens the project below `root`; `owner` is the organization whose files they are. */
  static async open(files: CheckoutFiles, owner: string, root: string): Promise<ProjectFiles> {
    const opened = new ProjectFiles(files, owner, path.posix.join('/', root).replace(/^\/|\/$/g, ''));
    opened.#names = new Set(await opened.list(''));
    return opened;
  }

  /** Tells whether the root has a file of the name, or a folder where the name ends with a slash. */
  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Returns the given names that the root has. */
  those(...names: string[]): string[] {
    return names.filter((name) => this.#names.has(name));
  }

  /** Returns the names in a folder, those of folders with a slash at their end; none if there is no such folder. */
  list(folder: string): Promise<string[]> {
    return this.#files.list(this.#path(folder));
  }

  /** Returns the text of a file; empty if there is none. */
  async read(file: string): Promise<string> {
    // Each reading of a remote repository starts programs.
    const text = this.#texts.get(file) ?? (await this.#files.read(this.#path(file))) ?? '';
    this.#texts.set(file, text);
    return text;
  }

  /** Returns parts of a file of JSON; null if there is none. Throws ParsingError. */
  async json(file: string, shape: Shape): Promise<unknown> {
    const text = await this.read(file);
    return text === '' ? null : readFileOf(this.#owner, 'json-shape', { name: this.#path(file), text }, { shape });
  }

  /** Returns the content of a file of TOML; an empty object if there is none. Throws ParsingError. */
  async toml(file: string): Promise<Record<string, unknown>> {
    const text = await this.read(file);
    return text === ''
      ? {}
      : ((await readFileOf(this.#owner, 'toml', { name: this.#path(file), text })) as Record<string, unknown>);
  }

  /** Returns the command of a type of process in the Procfile; null if there is none. */
  async procfile(type: string): Promise<string | null> {
    const line = (await this.read('Procfile')).split(/\r?\n/).find((text) => text.startsWith(`${type}:`));
    return line?.slice(type.length + 1).trim() || null;
  }

  #path(file: string): string {
    return [this.#root, file].filter((part) => part !== '').join('/');
  }
}
