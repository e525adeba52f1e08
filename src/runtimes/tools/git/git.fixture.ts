import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { createHttpClient } from '#platform/http-client/index.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import type { TestRepository } from '#test/harness/repository.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import type { GitSource } from '#runtimes/tools/git/index.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';

const IDENTITY = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
export const CREDENTIALS = { username: 'reader', password: 'token-of-the-reader' };

/** Makes a repository with three commits, and two servers of it: one open, one that requires CREDENTIALS. */
export async function useGit() {
  const root = makeRepositoryRoot();
  const out = mkdtempSync(path.join(tmpdir(), 'git-checkout-'));
  const app = root.make('app');
  const commits = [
    app.commit({ 'README.md': 'one\n', 'src/main.txt': 'no end of line' }),
    app.commit(
      { 'README.md': 'two\r\n', 'sub/Dockerfile': 'FROM x\n' },
      { message: 'second: "quoted"', author: 'Zoë' },
    ),
    app.commit({ 'README.md': 'three\n' }),
  ];
  app.git(...IDENTITY, 'tag', '-a', 'v1', '-m', 'first', commits[1]!);
  app.git('branch', 'other', commits[0]!);
  app.git('branch', 'v1', commits[0]!);
  const open = await startGitServer({ root: root.folder });
  const closed = await startGitServer({ root: root.folder, credentials: CREDENTIALS });

  afterAll(async () => {
    await open[Symbol.asyncDispose]();
    await closed[Symbol.asyncDispose]();
    root.remove();
    rmSync(out, { recursive: true });
  });

  const { request } = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });
  const git = () => new Git({ localRoots: [root.folder], request });
  const from = (url: string, changes: Partial<GitSource> = {}): GitSource => ({
    url,
    branch: 'main',
    credentials: null,
    signal: new AbortController().signal,
    ...changes,
  });

  /** Checks out into a new folder. */
  async function checkout(
    source: Parameters<Git['checkout']>[0],
    commit: string,
  ): Promise<{ folder: string; lines: string[] }> {
    const folder = path.join(mkdtempSync(path.join(out, 'c-')), 'tree');
    const lines: string[] = [];
    await git().checkout(source, commit, folder, (line) => lines.push(line));
    return { folder, lines };
  }

  return { root, open, closed, app, commits, out, git, from, checkout, request };
}

/** Commits the staged files; returns the commit. */
export function commitIndex(repository: TestRepository): string {
  repository.git(...IDENTITY, 'commit', '--quiet', '-m', 'links');
  return repository.git('rev-parse', 'HEAD');
}
