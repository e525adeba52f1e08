import { execFile } from 'node:child_process';
import { lstatSync, realpathSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { RuntimeError, cancelled } from '#runtimes/runtime.ts';
import { DEFAULT_PATH, runCommand, type CommandOptions, type CommandResult } from '#runtimes/tools/command.ts';
import { gitEnvironment, type GitAccess } from '#runtimes/tools/git/environment.ts';
import { explain, isMissingRef } from '#runtimes/tools/git/explain.ts';
import { isWithin, type GitLocation } from '#runtimes/tools/git/location.ts';
import { refsOf } from '#runtimes/tools/git/names.ts';
import { keepsPromises } from '#runtimes/tools/git/promises.ts';
import { isRedirected, redirectTarget } from '#runtimes/tools/git/redirect.ts';

/** Time limits in seconds for queries, and for transfers. */
const LOOK_SECONDS = 60;
const FETCH_SECONDS = 600;
/** Size limits in bytes of a listing (100,000 paths), and of a file that is read. */
const LISTING_BYTES = 32 << 20;
const FILE_BYTES = 1 << 20;
const MOST_REDIRECTS = 3;

export interface RepositoryParts extends GitAccess {
  location: GitLocation;
  /** Empty folder for the repository alone. */
  directory: string;
  signal: AbortSignal;
  log(line: string): void;
  /** Checks a URL against the policy; throws RuntimeError `refused`. */
  locate(url: string): Promise<GitLocation>;
}

/** Repository in its own folder that fetches from one location. */
export class Repository {
  readonly #parts: RepositoryParts;
  #location: GitLocation;
  #access: GitAccess;
  /** Folder within the repository that the source names: a local path may lie inside a larger work tree. Ends with `/`, or is empty. */
  prefix = '';

  constructor(parts: RepositoryParts) {
    this.#parts = parts;
    this.#location = parts.location;
    this.#access = parts;
  }

  get directory(): string {
    return this.#parts.directory;
  }

  /** Present location, which changes with redirects. */
  get location(): GitLocation {
    return this.#location;
  }

  get access(): GitAccess {
    return this.#access;
  }

  async initialise(): Promise<void> {
    await this.git(['init', '--quiet', '--template=', '.']);
    if (this.#location.kind !== 'local') return;
    const top = await this.#run(['-C', this.#location.url, 'rev-parse', '--show-toplevel', '--show-prefix']);
    if (top.exitCode === 0) {
      const [folder, prefix] = top.stdout.split('\n');
      this.#location = { ...this.#location, url: folder! };
      this.prefix = prefix ?? '';
      return;
    }
    const bare = await this.#run(['-C', this.#location.url, 'rev-parse', '--is-bare-repository']);
    if (bare.stdout.trim() !== 'true')
      throw new RuntimeError('failed', `${this.#location.url} is not a git repository.`);
  }

  /** Returns the commit of a branch or tag without fetching. */
  async head(branch: string): Promise<string> {
    return (await this.heads([branch])).get(branch) ?? (await this.#failMissing(branch));
  }

  /** Returns the commits of branches or tags without fetching, with one question; null for those that the repository lacks. */
  async heads(branches: readonly string[]): Promise<Map<string, string | null>> {
    const refs = [...new Set(branches.flatMap((branch) => namesOf(branch)))];
    const result = await this.#network((url) => ['ls-remote', '--quiet', '--', url, ...refs]);
    if (result.exitCode !== 0) throw this.#explain(result);
    const found = new Map(
      result.stdout.split('\n').map((line) => line.split('\t').reverse() as [string, string | undefined]),
    );
    const commitOf = (branch: string) => namesOf(branch).map((name) => found.get(name)).find((id) => id !== undefined); // prettier-ignore
    return new Map(branches.map((branch) => [branch, commitOf(branch) ?? null]));
  }

  /** Returns the branch that HEAD names without fetching; undefined if it names none. */
  async defaultBranch(): Promise<string | undefined> {
    const result = await this.#network((url) => ['ls-remote', '--quiet', '--symref', '--', url, 'HEAD']);
    if (result.exitCode !== 0) throw this.#explain(result);
    return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(result.stdout)?.[1];
  }

  /** Fetches the commit of a branch or tag, with `options` of `git fetch`; returns it. */
  async fetchBranch(branch: string, options: readonly string[]): Promise<string> {
    for (const ref of refsOf(branch)) {
      const fetched = await this.#fetch([ref], options);
      if (fetched.exitCode === 0) return this.#commitOf('FETCH_HEAD');
      if (!isMissingRef(fetched)) throw this.#explain(fetched);
    }
    return this.#failMissing(branch);
  }

  /**
   * Fetches one commit. If the server does not provide single commits, or the id is abbreviated, fetches the history of the branch, or of
   * all branches without one. `depth` is the number of commits from it on back; null for all of them.
   */
  async fetchCommit(
    commit: string,
    branch: string | null,
    options: readonly string[],
    depth: number | null = 1,
  ): Promise<string> {
    if (commit.length === 40) {
      const direct = await this.#fetch([commit], [...(depth === null ? [] : [`--depth=${depth}`]), ...options]);
      if (direct.exitCode === 0) return commit;
    }
    if (branch !== null) await this.fetchBranch(branch, options);
    else {
      const all = await this.#fetch(['+refs/heads/*:refs/all/heads/*', '+refs/tags/*:refs/all/tags/*'], options);
      if (all.exitCode !== 0) throw this.#explain(all);
    }
    const found = await this.#run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${commit}^{commit}`]);
    if (found.exitCode === 0) return found.stdout.trim();
    const where = branch === null ? '' : `branch ${branch} of `;
    throw new RuntimeError('failed', `Commit ${commit} is not in ${where}${this.#location.url}.`);
  }

  /** Returns the paths of a commit's files below `prefix`, and its submodules by path. */
  async listTree(commit: string): Promise<{ files: string[]; submodules: Map<string, string> }> {
    const args = ['ls-tree', '-r', '-z', commit, '--', this.prefix || '.'];
    const { stdout } = await this.git(args, { keepBytes: LISTING_BYTES });
    if (stdout.length >= LISTING_BYTES)
      throw new RuntimeError('failed', `${this.#location.url} has too many files to be listed.`);
    const files: string[] = [];
    const submodules = new Map<string, string>();
    for (const entry of stdout.split('\0')) {
      const [, type, id, file] = /^\d+ (\w+) (\w+)\t([^]+)$/.exec(entry) ?? [];
      if (type === 'commit') submodules.set(file!, id!);
      else if (type === 'blob') files.push(file!);
    }
    return { files, submodules };
  }

  /** Returns the last commit that is in the history of both fetched ones; undefined if there is none. */
  async mergeBase(one: string, other: string): Promise<string | undefined> {
    const found = await this.#run(['merge-base', '--end-of-options', one, other]);
    if (found.exitCode === 0) return found.stdout.trim();
    if (found.exitCode === 1) return undefined;
    throw this.#explain(found);
  }

  /** Returns the paths of the files that differ between two fetched commits; null if there are too many. */
  async changedPaths(from: string, to: string): Promise<string[] | null> {
    const args = ['diff', '--name-only', '--no-renames', '--no-ext-diff', '-z', from, to, '--'];
    const { stdout } = await this.git(args, { keepBytes: LISTING_BYTES });
    // Each path ends with a zero. What comes behind the last one is the end of the output, and no path.
    return stdout.length >= LISTING_BYTES ? null : stdout.split('\0').slice(0, -1);
  }

  /** Returns the text of a file in a commit; undefined if absent. */
  async readFile(commit: string, file: string): Promise<string | undefined> {
    const { stdout } = await this.git(['ls-tree', '-z', commit, '--', file]);
    const [, id] = /^100\d{3} blob (\w+)\t/.exec(stdout) ?? [];
    if (id === undefined) return undefined;
    const size = Number((await this.git(['cat-file', '-s', id])).stdout);
    if (size > FILE_BYTES) throw new RuntimeError('failed', `${file} has ${size} bytes; at most 1 MiB is read.`);
    const read = await promisify(execFile)('git', ['cat-file', 'blob', id], {
      cwd: this.directory,
      env: { PATH: DEFAULT_PATH, ...this.#environment() },
      encoding: 'utf8',
      maxBuffer: FILE_BYTES * 2,
      timeout: LOOK_SECONDS * 1000,
      killSignal: 'SIGKILL',
      signal: this.#parts.signal,
    }).catch((error: Error) => {
      if (this.#parts.signal.aborted) throw cancelled(error);
      throw new RuntimeError('failed', `${file} of ${this.#location.url} cannot be read: ${error.message}`, error);
    });
    return read.stdout;
  }

  /** Writes the files of a commit into the folder. */
  async checkout(commit: string): Promise<void> {
    await this.git(['checkout', '--quiet', '--force', '--detach', commit], { timeoutSeconds: FETCH_SECONDS });
  }

  /** Returns the checked-out files that may be pointers of Git LFS. */
  async lfsFiles(files: readonly string[]): Promise<string[]> {
    const attributes = files.filter((file) => path.posix.basename(file) === '.gitattributes');
    const texts = await Promise.all(attributes.map((file) => this.#readRegular(file)));
    if (!texts.some((text) => text.includes('filter=lfs'))) return [];
    const input = files.map((file) => `${file}\0`).join('');
    const { stdout } = await this.git(['check-attr', '-z', '--stdin', 'filter'], { input, keepBytes: LISTING_BYTES });
    const parts = stdout.split('\0');
    return files.filter((_, index) => parts[index * 3 + 2] === 'lfs');
  }

  /** Returns the data folder of a repository on this machine; null for a remote one. */
  async localStore(): Promise<string | null> {
    const { kind, url } = this.#location;
    if (kind !== 'local') return null;
    const { stdout } = await this.git(['-C', url, 'rev-parse', '--git-common-dir']);
    return path.resolve(url, stdout.trimEnd());
  }

  /** Removes git's own files, and those of a larger work tree outside of the source's folder. */
  async keepFilesOnly(): Promise<void> {
    await rm(path.join(this.directory, '.git'), { recursive: true, force: true });
    if (!this.prefix) return;
    const aside = `${this.directory}.whole`;
    await rm(aside, { recursive: true, force: true });
    await rename(this.directory, aside);
    try {
      const wanted = path.join(aside, this.prefix);
      const stat = lstatSync(wanted.replace(/\/$/, ''), { throwIfNoEntry: false });
      // A link in the repository may not lead to a folder outside of it.
      if (!stat?.isDirectory() || !isWithin(realpathSync(wanted), realpathSync(aside)))
        throw new RuntimeError('failed', `${this.prefix} is not a folder of ${this.#location.url} in that commit.`);
      await rename(wanted, this.directory);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
  }

  /** Runs git in the folder; throws if it fails. */
  async git(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    const result = await this.#run(args, options);
    if (result.exitCode !== 0) throw this.#explain(result);
    return result;
  }

  async #fetch(refs: readonly string[], options: readonly string[]): Promise<CommandResult> {
    // Filtered objects are promised by the remote; its name is the URL and must not begin with a slash.
    const mayLeaveOut = this.#location.kind !== 'local' && (await keepsPromises());
    const wanted = mayLeaveOut ? options : options.filter((one) => !one.startsWith('--filter'));
    const args = ['fetch', '--quiet', '--no-tags', '--no-write-commit-graph', ...wanted];
    return this.#network((url) => [...args, '--', url, ...refs], FETCH_SECONDS);
  }

  /** Runs a git command that connects to the remote; follows a redirect if the policy allows its target. */
  async #network(makeArgs: (url: string) => string[], timeoutSeconds = LOOK_SECONDS): Promise<CommandResult> {
    for (let redirects = 0; ; redirects++) {
      const result = await this.#run(makeArgs(this.#location.url), { timeoutSeconds });
      if (result.exitCode === 0 || !isRedirected(result)) return result;
      const { credentials } = this.#access;
      const target = await redirectTarget(this.#location, credentials, this.#parts.signal);
      if (target === null || redirects === MOST_REDIRECTS) return result;
      const next = await this.#parts.locate(target);
      if (next.kind !== 'https' && next.kind !== 'http') return result;
      if (next.origin !== this.#location.origin) this.#access = { ...this.#access, credentials: null };
      this.#location = next;
    }
  }

  async #failMissing(branch: string): Promise<never> {
    const { stdout } = await this.#network((url) => ['ls-remote', '--quiet', '--heads', '--', url]);
    const names = stdout.split('\n').flatMap((line) => line.split('\trefs/heads/')[1] ?? []);
    const known = names.length === 0 ? 'it has none' : `it has ${names.slice(0, 10).join(', ')}`;
    const more = names.length > 10 ? ` and ${names.length - 10} more` : '';
    throw new RuntimeError('failed', `${this.#location.url} has no branch or tag ${branch}; ${known}${more}.`);
  }

  async #commitOf(name: string): Promise<string> {
    return (await this.git(['rev-parse', '--verify', '--end-of-options', `${name}^{commit}`])).stdout.trim();
  }

  async #readRegular(file: string): Promise<string> {
    const full = path.join(this.directory, file);
    return lstatSync(full).isFile() ? readFile(full, 'utf8') : '';
  }

  #environment(): Record<string, string> {
    return gitEnvironment(this.#location, this.#access);
  }

  async #run(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    const timeoutSeconds = options.timeoutSeconds ?? LOOK_SECONDS;
    const started = performance.now();
    const { signal, log } = this.#parts;
    try {
      return await runCommand('git', args, {
        cwd: this.directory,
        env: this.#environment(),
        signal,
        onLine: (line, stream) => stream === 'stderr' && log(line),
        ...options,
        timeoutSeconds,
      });
    } catch (error) {
      if (signal.aborted && !(error instanceof RuntimeError)) throw cancelled(error);
      if (performance.now() - started < timeoutSeconds * 1000) throw error;
      throw new RuntimeError('unreachable', `${this.#location.url} did not answer within ${timeoutSeconds} s.`, error);
    }
  }

  #explain(result: CommandResult): RuntimeError {
    return explain(result, this.#location, this.#access.credentials !== null);
  }
}

/** Names of a branch or tag in the order of their precedence; `^{}` is the commit of an annotated tag. */
const namesOf = (branch: string): string[] => refsOf(branch).flatMap((ref) => [`${ref}^{}`, ref]);
