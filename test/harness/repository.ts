import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Git repository in a folder of its own, under a root that QUARTERDECK_LOCAL_GIT_ROOTS can name. */
export interface TestRepository {
  /** URL of the repository, for services. */
  url: string;
  /** Writes files and commits them; returns the commit. Commits are a minute apart from each other. */
  commit(files: Record<string, string>, options?: { author?: string; email?: string; message?: string }): string;
  git(...args: string[]): string;
}

export interface RepositoryRoot {
  /** Value for QUARTERDECK_LOCAL_GIT_ROOTS. */
  folder: string;
  make(name?: string): TestRepository;
  /** Opens a repository that git has made in the folder. */
  open(name: string): TestRepository;
  remove(): void;
}

const START = Date.UTC(2026, 0, 1);

/** Creates a folder for the repositories of a test file. */
export function makeRepositoryRoot(): RepositoryRoot {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'qd-repositories-')));
  let made = 0;
  return {
    folder,
    make: (name = `repository-${++made}`) => makeRepository(path.join(folder, name)),
    open: (name) => repositoryIn(path.join(folder, name)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function makeRepository(directory: string): TestRepository {
  mkdirSync(directory, { recursive: true });
  const repository = repositoryIn(directory);
  repository.git('init', '--quiet', '--initial-branch=main');
  repository.git('config', 'uploadpack.allowFilter', 'true');
  return repository;
}

function repositoryIn(directory: string): TestRepository {
  let commits = 0;
  const run = (args: string[], extra: Record<string, string> = {}): string =>
    execFileSync('git', args, {
      cwd: directory,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: directory, GIT_CONFIG_NOSYSTEM: '1', ...extra },
    }).trim();
  return {
    url: directory,
    commit: (files, { author = 'Ada Lovelace', email = 'ada@example.com', message = `change ${commits + 1}` } = {}) => {
      for (const [file, content] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
        writeFileSync(path.join(directory, file), content);
      }
      const date = new Date(START + commits++ * 60_000).toISOString();
      run(['add', '--all']);
      run(['commit', '--quiet', '--allow-empty', '-m', message], {
        GIT_AUTHOR_NAME: author,
        GIT_AUTHOR_EMAIL: email,
        GIT_AUTHOR_DATE: date,
        GIT_COMMITTER_NAME: author,
        GIT_COMMITTER_EMAIL: email,
        GIT_COMMITTER_DATE: date,
      });
      return run(['rev-parse', 'HEAD']);
    },
    git: (...args) => run(args),
  };
}
