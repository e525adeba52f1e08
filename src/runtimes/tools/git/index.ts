import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';
import { runCommand, type CommandResult } from '#runtimes/tools/command.ts';
import { gitEnvironment, type GitCredentials } from '#runtimes/tools/git/environment.ts';
import { checkBranch, checkCommit, locate, type GitLocation } from '#runtimes/tools/git/location.ts';

export type { GitCredentials } from '#runtimes/tools/git/environment.ts';

export interface GitOptions {
  /** Folders under which URLs may be local paths. */
  localRoots: readonly string[];
  /** Throws when a host must not be connected to. */
  addressPolicy?: (host: string) => Promise<void>;
}

/** A repository that is asked for something. */
export interface GitSource {
  url: string;
  /** Branch or tag. */
  branch: string;
  credentials: GitCredentials | null;
  signal: AbortSignal;
}

export interface GitCommit {
  id: string;
  /** RFC 3339. */
  date: string;
  author: string;
  /** Of the author, as the commit says it. */
  email: string;
  message: string;
  tag: string;
}

const FORMAT = '%H%x1f%cI%x1f%an%x1f%ae%x1f%s%x1f%D%x1e';
const LOOK_SECONDS = 60;
const FETCH_SECONDS = 600;

/** Git as the program uses it: never through a shell, in an environment of its own (environment.ts), URLs by policy (location.ts). */
export class Git {
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  /** The commit at the head of the branch, or the named one, with author and message. */
  async resolve(source: GitSource, commitId: string | null = null): Promise<GitCommit> {
    if (commitId) checkCommit(commitId);
    return this.#withRepository(source, async (repository) => {
      const wanted = await repository.fetch(commitId, ['--depth=1', '--filter=tree:0']);
      const [commit] = parseLog((await repository.git(['log', '-1', `--format=${FORMAT}`, wanted])).stdout);
      if (!commit) throw new RuntimeError('failed', `${commitId ?? source.branch} has no commit.`);
      return commit;
    });
  }

  /** The newest commits of the branch, newest first. */
  async listCommits(source: GitSource, limit: number): Promise<GitCommit[]> {
    return this.#withRepository(source, async (repository) => {
      const head = await repository.fetch(null, [`--depth=${limit}`, '--filter=tree:0']);
      return parseLog((await repository.git(['log', `-${limit}`, `--format=${FORMAT}`, head])).stdout);
    });
  }

  /** Text of a file at the head of the branch, or undefined if there is none. At most 1 MiB. */
  async readFile(source: GitSource, file: string): Promise<string | undefined> {
    return this.#withRepository(source, async (repository) => {
      const head = await repository.fetch(null, ['--depth=1']);
      const result = await repository.try(['cat-file', 'blob', `${head}:${repository.inside(file)}`]);
      return result.exitCode === 0 ? result.stdout : undefined;
    });
  }

  /** Paths of the files at the head of the branch, relative to its root (or to the local folder). */
  async listFiles(source: GitSource): Promise<string[]> {
    return this.#withRepository(source, async (repository) => {
      const head = await repository.fetch(null, ['--depth=1']);
      const { stdout } = await repository.git([
        'ls-tree',
        '-r',
        '-z',
        '--name-only',
        head,
        '--',
        repository.prefix || '.',
      ]);
      return stdout
        .split('\0')
        .filter((name) => name !== '')
        .map((name) => name.slice(repository.prefix.length));
    });
  }

  /** Checks a commit out into a new folder, with submodules and files of LFS. What the folder held before is gone. */
  async checkout(source: GitSource, commit: string, directory: string, log: (line: string) => void): Promise<void> {
    checkCommit(commit);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    const repository = await this.#open(source, directory, log);
    await repository.fetch(commit, ['--depth=1']);
    await repository.git(['checkout', '--quiet', '--force', '--detach', commit]);
    if (existsSync(path.join(directory, '.gitmodules')))
      await repository.git(['submodule', 'update', '--init', '--recursive', '--depth=1', '--jobs=2'], FETCH_SECONDS);
    if (await repository.usesLfs()) await repository.pullLfs();
    await repository.keepPrefixOnly();
  }

  async #withRepository<T>(source: GitSource, work: (repository: Repository) => Promise<T>): Promise<T> {
    const directory = await mkdtemp(path.join(tmpdir(), 'quarterdeck-git-'));
    try {
      return await work(await this.#open(source, directory, () => undefined));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  async #open(source: GitSource, directory: string, log: (line: string) => void): Promise<Repository> {
    checkBranch(source.branch);
    const location = locate(source.url, this.#options.localRoots);
    if (location.host) await this.#options.addressPolicy?.(location.host);
    const repository = new Repository(source, location, directory, log);
    await repository.initialise();
    return repository;
  }
}

/** A repository in a folder of its own that fetches from one source. */
class Repository {
  readonly #source: GitSource;
  readonly #directory: string;
  readonly #log: (line: string) => void;
  #location: GitLocation;
  /** Folder within the repository that the source means: a local path may lie inside a larger work tree. Ends with `/`, or is empty. */
  prefix = '';

  constructor(source: GitSource, location: GitLocation, directory: string, log: (line: string) => void) {
    this.#source = source;
    this.#location = location;
    this.#directory = directory;
    this.#log = log;
  }

  async initialise(): Promise<void> {
    await this.git(['init', '--quiet', '.']);
    if (this.#location.kind !== 'local') return;
    const top = await this.try(['-C', this.#location.url, 'rev-parse', '--show-toplevel', '--show-prefix']);
    if (top.exitCode !== 0) {
      const bare = await this.try(['-C', this.#location.url, 'rev-parse', '--is-bare-repository']);
      if (bare.stdout.trim() !== 'true')
        throw new RuntimeError('failed', `${this.#source.url} is not a git repository.`);
      return;
    }
    const [folder, prefix] = top.stdout.split('\n');
    this.#location = { ...this.#location, url: folder! };
    this.prefix = prefix ?? '';
  }

  /** Path of a file as git names it. */
  inside = (file: string): string => path.posix.join(this.prefix, file.replace(/^\/+/, ''));

  /** Fetches the branch's head, or a commit, and answers the commit. Servers that do not give single commits give the branch's history. */
  async fetch(commit: string | null, wanted: string[]): Promise<string> {
    // Git keeps what it left out as a promise of the remote, whose name is the URL and may not begin with a slash.
    const options = this.#location.kind === 'local' ? wanted.filter((one) => !one.startsWith('--filter')) : wanted;
    const full = commit && commit.length === 40 ? commit : null;
    if (full) {
      const direct = await this.try(
        ['fetch', '--quiet', '--no-tags', ...options, '--', this.#location.url, full],
        FETCH_SECONDS,
      );
      if (direct.exitCode === 0) return full;
    }
    const depth = commit ? options.filter((option) => !option.startsWith('--depth')) : options;
    const fetched = await this.try(
      ['fetch', '--quiet', '--no-tags', ...depth, '--', this.#location.url, await this.#refOf()],
      FETCH_SECONDS,
    );
    if (fetched.exitCode !== 0) throw this.#explain(fetched);
    const found = await this.try([
      'rev-parse',
      '--verify',
      '--quiet',
      '--end-of-options',
      `${commit ?? 'FETCH_HEAD'}^{commit}`,
    ]);
    if (found.exitCode !== 0)
      throw new RuntimeError(
        'failed',
        `Commit ${commit} is not in branch ${this.#source.branch} of ${this.#source.url}.`,
      );
    return found.stdout.trim();
  }

  /** Branch or tag as the remote names it. A local work tree whose checkout is detached has perhaps no such branch: `HEAD` is asked for by name. */
  async #refOf(): Promise<string> {
    const { branch } = this.#source;
    return branch === 'HEAD' ? 'HEAD' : branch;
  }

  async usesLfs(): Promise<boolean> {
    const found = await this.try([
      'grep',
      '-q',
      '-I',
      'filter=lfs',
      'HEAD',
      '--',
      '.gitattributes',
      ':(glob)**/.gitattributes',
    ]);
    return found.exitCode === 0;
  }

  async pullLfs(): Promise<void> {
    const there = await this.try(['lfs', 'version']);
    if (there.exitCode !== 0)
      throw new RuntimeError(
        'failed',
        'The repository keeps files in Git LFS, and git-lfs is not installed on this machine: install git-lfs.',
      );
    await this.git(
      [
        '-c',
        `lfs.url=${this.#location.kind === 'local' ? `file://${this.#location.url}` : `${this.#location.url.replace(/\.git$/, '')}.git/info/lfs`}`,
        'lfs',
        'pull',
      ],
      FETCH_SECONDS,
    );
  }

  /** Of a larger work tree only the folder that the source means is kept. */
  async keepPrefixOnly(): Promise<void> {
    await rm(path.join(this.#directory, '.git'), { recursive: true, force: true });
    if (!this.prefix) return;
    const aside = `${this.#directory}.whole`;
    await rm(aside, { recursive: true, force: true });
    await rename(this.#directory, aside);
    await rename(path.join(aside, this.prefix), this.#directory);
    await rm(aside, { recursive: true, force: true });
  }

  try(args: string[], seconds = LOOK_SECONDS): Promise<CommandResult> {
    const home = path.join(tmpdir(), 'quarterdeck-git-home');
    return runCommand('git', args, {
      cwd: this.#directory,
      env: gitEnvironment(this.#location, this.#source.credentials, home),
      signal: this.#source.signal,
      timeoutSeconds: seconds,
      onLine: (line, stream) => stream === 'stderr' && this.#log(line),
    });
  }

  async git(args: string[], seconds?: number): Promise<CommandResult> {
    const result = await this.try(args, seconds);
    if (result.exitCode !== 0) throw this.#explain(result);
    return result;
  }

  #explain({ stderr }: CommandResult): RuntimeError {
    const { url, branch } = this.#source;
    const last = stderr.trim().split('\n').slice(-3).join(' ').slice(0, 500);
    if (/could not read Username|Authentication failed|Permission denied|HTTP Basic|403|401/i.test(stderr))
      return new RuntimeError('failed', `${url} does not let us in: give the service a git token that may read it.`);
    if (/couldn't find remote ref/i.test(stderr)) return new RuntimeError('failed', `${url} has no branch ${branch}.`);
    if (/not found|does not (appear to be|exist)/i.test(stderr))
      return new RuntimeError('failed', `${url} is not there, or needs a git token.`);
    if (/Could not resolve host|Connection refused|timed out|unable to access/i.test(stderr))
      return new RuntimeError('unreachable', `${url} cannot be reached: ${last}`);
    return new RuntimeError('failed', `git failed on ${url}: ${last}`);
  }
}

function parseLog(text: string): GitCommit[] {
  return text
    .split('\x1e')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [id = '', date = '', author = '', email = '', message = '', refs = ''] = entry.split('\x1f');
      return { id, date: new Date(date).toISOString(), author, email, message, tag: /tag: ([^,]+)/.exec(refs)?.[1] ?? '' };
    });
}
