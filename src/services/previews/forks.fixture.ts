import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { KINDS } from '#services/mount.ts';
import { createPreviewLoops } from '#services/previews/index.ts';
import type { usePreviews } from '#services/previews/previews.fixture.ts';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

/** Provides a repository behind a git server, a fork of it, and pull requests from the fork. */
export function useForks(app: TestApp, fixture: ReturnType<typeof usePreviews>) {
  const root = makeRepositoryRoot();
  let server: GitServer;
  const loops = new Set<ReturnType<typeof createPreviewLoops>[number]>();
  beforeAll(async () => {
    server = await startGitServer({ root: root.folder });
  });
  afterEach(async () => {
    await Promise.all([...loops].map((loop) => loop.stop()));
    loops.clear();
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(root.folder, { recursive: true, force: true });
  });

  /** Makes a repository, an environment that makes previews of it with a service `web`, and the webhook. */
  async function place(base: Record<string, string> = { Dockerfile: 'FROM x\n' }, body: object = {}) {
    const name = `shop${newId().slice(0, 8)}`;
    const repository = root.make(name);
    repository.commit(base);
    repository.git('clone', '--quiet', '.', `../${name}-fork`);
    const admin = await app.organization();
    const git_repository = { url: `${server.url}/${name}`, branch: 'main' };
    const source = await fixture.sourceOf(admin, { git_repository, dockerfile_path: 'Dockerfile', ...body });
    const hook = await fixture.webhookOf(admin, `${new URL(server.url).host}//${name}`);
    const fork = root.open(`${name}-fork`);
    fork.git('checkout', '-q', '-b', 'feature');
    /** Pushes a commit to the fork; the repository of the base has it by the ref of the pull request, as providers do. */
    const push = (files: Record<string, string>, ref = 'refs/pull/7/head'): string => {
      const commit = fork.commit(files);
      repository.git('fetch', '-q', `../${name}-fork`, `+feature:${ref}`);
      return commit;
    };
    return { admin, ...source, hook, repository, fork, forkUrl: `${git_repository.url}-fork`, push, git_repository };
  }

  /** Applies calls and makes previews, as the program does. */
  function work() {
    const made = createPreviewLoops(
      { platform: app.platform, kinds: KINDS, sources: createSources(app.platform) },
      newId(),
    );
    for (const loop of made) {
      loops.add(loop);
      loop.start();
    }
  }

  /** Previews, once every call is applied and every preview was looked at. */
  async function settled(admin: Actor) {
    for (const loop of loops) loop.nudge();
    return fixture.settled(admin);
  }

  const listOf = async (actor: Actor, environment: string) =>
    ok(await actor.get(`/environment/${environment}/forkPreview`), 200).results;

  /** Waits until a service runs a commit. */
  async function runs(admin: Actor, environment: string, commit: string, name = 'web'): Promise<any> {
    const find = async () =>
      ok(await admin.get(`/environment/${environment}/application`), 200).results.find((one: any) => one.name === name);
    await expect.poll(async () => (await find()).git_repository.deployed_commit_id, { timeout: 30_000 }).toBe(commit);
    return find();
  }

  return { place, work, settled, listOf, runs, server: () => server };
}
