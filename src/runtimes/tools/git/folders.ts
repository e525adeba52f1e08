import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { RuntimeError } from '#runtimes/runtime.ts';
import { runChecked, type CommandOptions } from '#runtimes/tools/command.ts';
import { gitEnvironment } from '#runtimes/tools/git/environment.ts';
import { checkCommit } from '#runtimes/tools/git/names.ts';

/** Seconds for each step of git. */
const STEP_SECONDS = 300;

/** Refuses names that mean git's own files on macOS or Windows, wherever the commit was made and is checked out. */
const PROTECTED = ['-c', 'core.protectHFS=true', '-c', 'core.protectNTFS=true'];

/** Commit that was made from a folder without a repository. */
export interface FolderCommit {
  commit: string;
  /** Id of its tree: equal for equal content, whoever made the commit and when. */
  tree: string;
  /** File with all of its objects, packed by git. */
  pack: string;
  packedBytes: number;
}

/** Folder below which everything of one piece of work lies, and the end of the work. */
export interface FolderWork {
  home: string;
  signal: AbortSignal;
}

/**
 * Makes the commit that the file `stream` describes in the format of `git fast-import`. Throws RuntimeError, `refused` for content that git
 * does not take or would not check out.
 */
export async function importFolder(work: FolderWork, stream: string): Promise<FolderCommit> {
  const repository = path.join(work.home, 'repository');
  await mkdir(repository);
  const git = gitIn(repository, work);
  await git(['init', '--quiet', '--bare', '--template=', '.']);
  // All objects stay in one pack, however few they are.
  await refusing(git(['-c', 'fastimport.unpackLimit=0', 'fast-import', '--quiet', '--done'], { inputFile: stream }));
  // Names that git writes to no disk are accepted into a tree.
  await refusing(git([...PROTECTED, 'read-tree', 'refs/heads/folder']));
  const { stdout } = await git(['log', '-1', '--format=%H%n%T', 'refs/heads/folder']);
  const [commit, tree] = stdout.split('\n');
  const packs = path.join(repository, 'objects', 'pack');
  const names = (await readdir(packs)).filter((name) => name.endsWith('.pack'));
  if (!commit || !tree || names.length !== 1) throw new RuntimeError('failed', 'git did not pack the folder.');
  const pack = path.join(packs, names[0]!);
  return { commit, tree, pack, packedBytes: (await stat(pack)).size };
}

/**
 * Writes the files of a commit, whose objects are in a pack, into a new folder without git's own. `fetch` writes the pack into the file
 * that it is given. Earlier content of the folder is removed. Throws RuntimeError.
 */
export async function unpackFolder(
  work: FolderWork & { commit: string; directory: string },
  fetch: (file: string) => Promise<void>,
): Promise<void> {
  const { commit, directory } = work;
  checkCommit(commit);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const git = gitIn(directory, work);
  await git(['init', '--quiet', '--template=', '.']);
  const packs = path.join(directory, '.git', 'objects', 'pack');
  await mkdir(packs, { recursive: true });
  const pack = path.join(packs, 'pack-folder.pack');
  await fetch(pack);
  await git(['index-pack', pack]);
  await git([...PROTECTED, 'checkout', '--quiet', '--force', '--detach', commit]);
  await rm(path.join(directory, '.git'), { recursive: true, force: true });
}

/** Turns what git says of the content into a refusal. Time-outs, a full disk and a program that cannot be started are none. */
async function refusing(run: Promise<unknown>): Promise<void> {
  try {
    await run;
  } catch (error) {
    const said = error instanceof RuntimeError && / ended with status \d+: ([^]*)/.exec(error.message)?.[1];
    if (!said || !/^(?:fatal|error): /m.test(said) || /No space left|quota|Out of memory|Input\/output/i.test(said))
      throw error;
    throw new RuntimeError('refused', `git does not take it: ${firstOf(said)}`, error);
  }
}

const firstOf = (said: string): string => /^(?:fatal|error): (.*)/m.exec(said)![1]!.slice(0, 300);

/** Returns a function that runs git in a folder, with nothing of this machine's configuration. */
const gitIn =
  (cwd: string, { home, signal }: FolderWork) =>
  (args: readonly string[], options: CommandOptions = {}) =>
    runChecked('git', args, {
      cwd,
      env: gitEnvironment(
        { kind: 'local', url: cwd, host: null, origin: '', credentials: null },
        { credentials: null, home, sshKeyFile: null, knownHostsFile: path.join(home, 'known_hosts') },
      ),
      signal,
      timeoutSeconds: STEP_SECONDS,
      ...options,
    });
