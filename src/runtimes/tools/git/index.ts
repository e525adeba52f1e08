import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isForeignRef } from '#kernel/git-refs.ts';
import { RuntimeError } from '#runtimes/runtime.ts';
import { withinDisk, type DiskLimits } from '#runtimes/tools/disk-limits.ts';
import { fetchLfs, type WebRequest } from '#runtimes/tools/git/lfs.ts';
import { locate, overHttps } from '#runtimes/tools/git/location.ts';
import { importFolder, unpackFolder, type FolderCommit } from '#runtimes/tools/git/folders.ts';
import type { GitCredentials, GitLocation } from '#runtimes/tools/git/location.ts';
import { checkBranch, checkCommit, insidePath } from '#runtimes/tools/git/names.ts';
import { Repository } from '#runtimes/tools/git/repository.ts';
import { listSubmodules } from '#runtimes/tools/git/submodules.ts';
import { workFolder } from '#runtimes/tools/work-folders.ts';

export type { GitCredentials } from '#runtimes/tools/git/location.ts';

export interface GitOptions {
  /** Folders under which URLs may be local paths. */
  localRoots: readonly string[];
  /** Returns the addresses of a host that connections may use; throws for a forbidden host. */
  addressPolicy?: (host: string) => Promise<string[]>;
  /** Sends the requests that git does not (Git LFS), with the same policy. */
  request: WebRequest;
  /** Private key for ssh sources without a token; without it only open servers grant access. */
  sshKeyFile?: string;
  /** File of the known host keys of ssh servers, which are trusted on first use. Without it each connection is a first use. */
  knownHostsFile?: string;
  /** Folder for the work of git, which stays on the disk that `disk` watches; the system's for temporary files without it. */
  workDirectory?: string;
  /** Disk that one checkout, or one query of a repository, may take; no limit if absent. */
  disk?: DiskLimits;
}

/** Repository to read, with its branch. */
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
  /** Address of the author, as recorded in the commit. */
  email: string;
  message: string;
  tag: string;
}

export interface GitChanges {
  author: string;
  message: string;
  /** Relative to the root of the repository, or to the local folder. */
  paths: string[] | null;
}

/** Files at the head of a branch. */
interface GitFiles {
  /** Paths from the root of the repository, or of the local folder. */
  paths: string[];
  /** Returns the text of a file, at most 1 MiB; undefined if absent. */
  read(file: string): Promise<string | undefined>;
}

const FORMAT = '%H%x1f%cI%x1f%an%x1f%ae%x1f%s%x1f%D%x1e';
/** Maximum depth of submodules within submodules. */
const MOST_LEVELS = 8;

/**
 * Client of git repositories (docs/contributing/engine.md, *Builds*): runs git without a shell, in its own environment (environment.ts), on
 * URLs that the policy allows (location.ts). Every method throws RuntimeError: `refused` for a forbidden source, `unreachable`, `aborted`,
 * or `failed` with a sentence for the user.
 */
export class Git {
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  /**
   * Returns the address that receives a token for the repository; null if it needs none. The address is git's own: `git@host:path` is https
   * with a token, however the URL is written. Throws RuntimeError `refused`.
   */
  tokenAddress(url: string): string | null {
    const location = locate(url, this.#options.localRoots);
    if (location.kind === 'local') return null;
    return location.kind === 'ssh' ? overHttps(location) : location.url;
  }

  /** Returns the commit at the head of the branch. Cheap: nothing is fetched. */
  async resolveHead(source: GitSource): Promise<string> {
    return this.#withRepository(source, (repository) => repository.head(source.branch));
  }

  /** Returns the commits at the heads of branches, with one question; null for those that the repository lacks. */
  async resolveHeads(
    source: Omit<GitSource, 'branch'>,
    branches: readonly string[],
  ): Promise<Map<string, string | null>> {
    for (const branch of branches) checkBranch(branch);
    return this.#withRepository({ ...source, branch: 'HEAD' }, (repository) => repository.heads(branches));
  }

  /** Returns the branch that a repository's HEAD names; undefined if it names none (a commit, or nothing yet). */
  async defaultBranch(source: Omit<GitSource, 'branch'>): Promise<string | undefined> {
    return this.#withRepository({ ...source, branch: 'HEAD' }, (repository) => repository.defaultBranch());
  }

  /** Returns the commit at the head of the branch, or the named one, with author and message. */
  async resolve(source: GitSource, commitId: string | null = null): Promise<GitCommit> {
    if (commitId) checkCommit(commitId);
    return this.#withRepository(source, async (repository) => {
      const filter = '--filter=tree:0';
      const wanted = commitId
        ? await repository.fetchCommit(commitId, source.branch, [filter])
        : await repository.fetchBranch(source.branch, ['--depth=1', filter]);
      return parseLog((await repository.git(['log', '-1', `--format=${FORMAT}`, wanted])).stdout)[0]!;
    });
  }

  /**
   * Returns author and message of a commit, and the paths of the files that differ from an earlier one; null if that is not given, is gone, or
   * differs in too many. With `sinceFork` the earlier one is the last commit that both have in common: `from` went on by itself since then.
   */
  async changes(source: GitSource, given: string | null, to: string, sinceFork = false): Promise<GitChanges> {
    checkCommit(to);
    if (given !== null) checkCommit(given);
    const from = given !== null && sinceFork ? await this.#mergeBase(source, given, to) : given;
    return this.#withRepository(source, async (repository) => {
      const filter = ['--filter=blob:none'];
      const head = await repository.fetchCommit(to, source.branch, filter);
      const { stdout } = await repository.git(['log', '-1', '--format=%an%x1f%B', head]);
      const [author = '', message = ''] = stdout.split('\x1f');
      const said = { author, message: message.trim() };
      if (from === null || !(await ifThere(repository.fetchCommit(from, source.branch, filter))))
        return { ...said, paths: null };
      const paths = await repository.changedPaths(from, head);
      return { ...said, paths: paths && withinFolder(paths, repository.prefix) };
    });
  }

  /** Returns the last commit that two have in common; null if there is none, or one of them is gone. */
  async #mergeBase(source: GitSource, one: string, other: string): Promise<string | null> {
    return this.#withRepository(source, async (repository) => {
      const found: string[] = [];
      for (const commit of [one, other]) {
        // Commits alone, without their folders.
        const id = await ifThere(repository.fetchCommit(commit, null, ['--filter=tree:0'], null));
        if (id === undefined) return null;
        found.push(id);
      }
      return (await repository.mergeBase(found[0]!, found[1]!)) ?? null;
    });
  }

  /** Returns the newest commits of the branch, newest first. */
  async listCommits(source: GitSource, limit: number): Promise<GitCommit[]> {
    return this.#withRepository(source, async (repository) => {
      const head = await repository.fetchBranch(source.branch, [`--depth=${limit}`, '--filter=tree:0']);
      return parseLog((await repository.git(['log', `-${limit}`, `--format=${FORMAT}`, head])).stdout);
    });
  }

  /** Returns the text of a file at the head of the branch, at most 1 MiB; undefined if absent. */
  async readFile(source: GitSource, file: string): Promise<string | undefined> {
    return this.#withRepository(source, async (repository) => {
      const inside = insidePath(repository.prefix, file);
      const head = await repository.fetchBranch(source.branch, ['--depth=1']);
      return repository.readFile(head, inside);
    });
  }

  /** Returns the paths of the files at the head of the branch. They are relative to its root, or to the local folder. */
  async listFiles(source: GitSource): Promise<string[]> {
    return this.#withRepository(source, async (repository) => {
      const head = await repository.fetchBranch(source.branch, ['--depth=1', '--filter=blob:none']);
      const { files } = await repository.listTree(head);
      return files.map((file) => file.slice(repository.prefix.length));
    });
  }

  /** Lets `work` read the files at the head of the branch, which are fetched once. Files are read as by `readFile`. */
  async withFiles<T>(source: GitSource, work: (files: GitFiles) => Promise<T>): Promise<T> {
    return this.#withRepository(source, async (repository) => {
      const { prefix } = repository;
      const head = await repository.fetchBranch(source.branch, ['--depth=1']);
      const { files } = await repository.listTree(head);
      return work({
        paths: files.map((file) => file.slice(prefix.length)),
        read: async (file) => repository.readFile(head, insidePath(prefix, file)),
      });
    });
  }

  /**
   * Writes the files of a commit into a new folder, with submodules and files of LFS but without git's own. Earlier content of the folder
   * is removed. Submodules of a pull request, and of any source with `isUntrusted`, are fetched without credentials.
   */
  async checkout(
    source: GitSource & { isUntrusted?: boolean },
    commit: string,
    directory: string,
    log: (line: string) => void,
  ): Promise<void> {
    checkCommit(commit);
    checkBranch(source.branch);
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true });
    await this.#withHome({ ...source, name: nameOf(source) }, [directory], (bounded, home) =>
      this.#checkoutInto({
        source: bounded,
        commit,
        directory,
        home,
        log,
        level: 0,
        isForeign: source.isUntrusted === true || isForeignRef(source.branch),
      }),
    );
  }

  /**
   * Makes a commit from a stream of `git fast-import`. `write` puts it into the file that it is given, and may use the folder of that. `keep`
   * gets the commit with its pack, which is removed afterwards. Nothing limits the size: the caller does. Throws RuntimeError `refused` for
   * what git does not take.
   */
  async importFolder<T>(
    signal: AbortSignal,
    write: (file: string, signal: AbortSignal) => Promise<void>,
    keep: (commit: FolderCommit, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { disk } = this.#options;
    const limits = disk && { ...disk, mostBytes: Infinity };
    const name = 'The uploaded folder';
    return this.#withHome(
      { name, signal },
      [],
      async (work, home) => {
        const stream = path.join(home, 'stream');
        await write(stream, work.signal);
        const commit = await importFolder({ home, signal: work.signal }, stream);
        return keep(commit, work.signal);
      },
      limits,
    );
  }

  /** Writes the files of a commit into a new folder; `fetch` puts the pack with its objects into the file it is given. */
  async unpackFolder(
    source: { commit: string; directory: string; signal: AbortSignal },
    fetch: (file: string) => Promise<void>,
  ): Promise<void> {
    const { commit, directory } = source;
    await mkdir(directory, { recursive: true });
    const work = { name: `The checkout of the uploaded folder ${commit}`, signal: source.signal };
    await this.#withHome(work, [directory], (work, home) =>
      unpackFolder({ home, signal: work.signal, commit, directory }, fetch),
    );
  }

  async #checkoutInto(work: Checkout): Promise<void> {
    const { source, commit, level, log } = work;
    if (level > MOST_LEVELS) throw new RuntimeError('refused', `Submodules are nested more than ${MOST_LEVELS} deep.`);
    const repository = await this.#open(source, work.directory, work.home, log);
    log(`Fetching ${repository.location.url} at ${commit}`);
    const found = await repository.fetchCommit(commit, level === 0 ? source.branch : null, []);
    await repository.checkout(found);
    const { files, submodules } = await repository.listTree(found);
    await this.#fetchLarge(repository, files, source.signal);
    for (const { url, commit: linked, directory } of await listSubmodules(repository, submodules)) {
      if (work.isForeign) this.#refuseOwnAccess(url);
      const credentials = work.isForeign ? null : await this.#credentialsFor(url, repository);
      await this.#checkoutInto({
        ...work,
        source: { ...source, url, credentials },
        commit: linked,
        directory,
        level: level + 1,
      });
    }
    await repository.keepFilesOnly();
  }

  async #fetchLarge(repository: Repository, files: readonly string[], signal: AbortSignal): Promise<void> {
    const large = await repository.lfsFiles(files);
    if (large.length === 0) return;
    const { location, access } = repository;
    const localStore = await repository.localStore();
    const { request, disk } = this.#options;
    const mostBytes = disk?.mostBytes ?? Infinity;
    const source = { location, credentials: access.credentials, localStore, request, mostBytes, signal };
    await fetchLfs(source, repository.directory, large);
  }

  /** Returns the credentials for a submodule: those of its repository if both have the same server, otherwise none. */
  async #credentialsFor(url: string, parent: Repository): Promise<GitCredentials | null> {
    const location = locate(url, this.#options.localRoots);
    const isSame =
      location.host === parent.location.host && (location.kind === 'ssh' || location.origin === parent.location.origin);
    return isSame ? parent.access.credentials : null;
  }

  /** Throws for a submodule that would be read with the access of this installation: its ssh key, or its folders. */
  #refuseOwnAccess(url: string): void {
    const { kind } = locate(url, this.#options.localRoots);
    if (kind !== 'https' && kind !== 'http')
      throw new RuntimeError(
        'refused',
        `The submodule ${url.slice(0, 200)} of a pull request is not fetched: only those that need no access are, over https.`,
      );
  }

  async #withRepository<T>(source: GitSource, work: (repository: Repository) => Promise<T>): Promise<T> {
    checkBranch(source.branch);
    return this.#withHome({ ...source, name: nameOf(source) }, [], async (bounded, home) => {
      const directory = path.join(home, 'repository');
      await mkdir(directory);
      return work(await this.#open(bounded, directory, home, () => undefined));
    });
  }

  /**
   * Provides a temporary folder, the HOME of git's processes, for one piece of work. Disk limits apply to it and to the work's other
   * folders.
   */
  async #withHome<T, Source extends { name: string; signal: AbortSignal }>(
    source: Source,
    filled: readonly string[],
    work: (source: Source, home: string) => Promise<T>,
    limits = this.#options.disk,
  ): Promise<T> {
    const home = await this.#makeHome();
    try {
      return await withinDisk({
        name: source.name,
        folders: [home, ...filled],
        disk: filled[0] ?? home,
        limits,
        signal: source.signal,
        run: (signal) => work({ ...source, signal }, home),
      });
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }

  async #makeHome(): Promise<string> {
    const { workDirectory } = this.#options;
    if (workDirectory === undefined) return mkdtemp(path.join(tmpdir(), 'quarterdeck-git-'));
    const home = workFolder(path.join(workDirectory, randomUUID()));
    await mkdir(home, { recursive: true, mode: 0o700 });
    return home;
  }

  async #open(source: GitSource, directory: string, home: string, log: (line: string) => void): Promise<Repository> {
    let location = await this.#locate(source.url);
    const credentials = source.credentials ?? location.credentials;
    // Tokens work over https only: the same repository is read there.
    const web = credentials && location.kind === 'ssh' ? overHttps(location) : null;
    if (web) location = await this.#locate(web);
    const repository = new Repository({
      location,
      credentials,
      home,
      directory,
      log,
      signal: source.signal,
      sshKeyFile: this.#options.sshKeyFile ?? null,
      knownHostsFile: this.#options.knownHostsFile ?? path.join(home, 'known_hosts'),
      locate: (url) => this.#locate(url),
    });
    await repository.initialise();
    return repository;
  }

  async #locate(url: string): Promise<GitLocation> {
    const location = locate(url, this.#options.localRoots);
    if (location.host === null || !this.#options.addressPolicy) return location;
    return { ...location, addresses: await this.#options.addressPolicy(location.host) };
  }
}

interface Checkout {
  source: GitSource;
  commit: string;
  directory: string;
  home: string;
  log(line: string): void;
  /** Depth of the repository: 0 for the source itself, 1 for its submodules. */
  level: number;
  /** True if a stranger may have chosen the submodules: nothing of this installation is used to fetch them. */
  isForeign: boolean;
}

/** Returns the commit that a repository is asked for; undefined if it does not have it. */
async function ifThere(fetched: Promise<string>): Promise<string | undefined> {
  try {
    return await fetched;
  } catch (error) {
    if (error instanceof RuntimeError && error.code === 'failed') return undefined;
    throw error;
  }
}

const nameOf = ({ url }: GitSource): string => `The checkout of ${url}`;

const withinFolder = (paths: string[], prefix: string): string[] =>
  paths.filter((file) => file.startsWith(prefix)).map((file) => file.slice(prefix.length));

function parseLog(text: string): GitCommit[] {
  return text
    .split('\x1e')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [id = '', date = '', author = '', email = '', message = '', refs = ''] = entry.split('\x1f');
      const tag = /tag: ([^,]+)/.exec(refs)?.[1] ?? '';
      return { id, date: new Date(date).toISOString(), author, email, message, tag };
    });
}
