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

  /** Path of the project from the root of the repository; empty for the root. */
  get root(): string {
    return this.#root;
  }

  /** Returns the folders above the project, the nearest first, up to the root of the repository. */
  async above(): Promise<ProjectFiles[]> {
    const parts = this.#root.split('/').filter((part) => part !== '');
    const roots = parts.map((_, index) => parts.slice(0, index).join('/')).toReversed();
    return Promise.all(roots.map((root) => ProjectFiles.open(this.#files, this.#owner, root)));
  }

  /** Returns the path of the project from a folder above it. */
  from(home: ProjectFiles): string {
    return path.posix.relative(`/${home.root}`, `/${this.#root}`);
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

  /** Returns the content of a file of YAML; null if there is none. Throws ParsingError. */
  async yaml(file: string): Promise<unknown> {
    const text = await this.read(file);
    const options = { maxAliasCount: 0, plain: true };
    return text === '' ? null : readFileOf(this.#owner, 'yaml', { name: this.#path(file), text }, options);
  }

  /** Returns the content of a file of TOML; an empty object if there is none. Throws ParsingError. */
  async toml(file: string): Promise<Record<string, unknown>> {
    const text = await this.read(file);
    return text === ''
      ? {}
      : ((await readFileOf(this.#owner, 'toml', { name: this.#path(file), text })) as Record<string, unknown>);
  }

  /** Returns the paths that patterns of a file match (`matchGlobs`). Throws ParsingError for patterns that take too long. */
  matching(file: string, patterns: string[], paths: string[]): Promise<string[]> {
    const text = JSON.stringify(patterns);
    return readFileOf(this.#owner, 'globs', { name: `A pattern in ${this.#path(file)}`, text }, { paths });
  }

  /** Returns the command in the Procfile of the first type that it has; null if it has none of them. */
  async procfile({ processes }: { processes: readonly string[] }): Promise<string | null> {
    const lines = (await this.read('Procfile')).split(/\r?\n/);
    for (const type of processes) {
      const line = lines.find((text) => text.startsWith(`${type}:`));
      const command = line?.slice(type.length + 1).trim();
      if (command) return command;
    }
    return null;
  }

  #path(file: string): string {
    return [this.#root, file].filter((part) => part !== '').join('/');
  }
}
