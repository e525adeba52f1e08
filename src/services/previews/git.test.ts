import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { KINDS } from '#services/mount.ts';
import { createPreviewLoops } from '#services/previews/index.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import type { Sender } from '#services/pushes/signature.ts';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app, {}, undefined, { pretendsSources: true });
const { webhookOf, sourceOf, tell, settled } = usePreviews(app);

let server: GitServer;
let root: ReturnType<typeof makeRepositoryRoot>;
beforeAll(async () => {
  root = makeRepositoryRoot();
  server = await startGitServer({ root: root.folder });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(root.folder, { recursive: true, force: true });
});

test(
  'the head of a real repository is deployed, and its files decide which services',
  { timeout: 60_000 },
  async () => {
    const repository = root.make('shop');
    const base = repository.commit({ Dockerfile: 'FROM x\n', 'web/index.js': 'one\n', 'docs/a.md': 'one\n' });
    repository.git('checkout', '-q', '-b', 'feature');
    const first = repository.commit({ 'docs/a.md': 'two\n' });
    const second = repository.commit({ 'web/index.js': 'two\n' });
    const third = repository.commit({ 'docs/a.md': 'three\n' });
    const admin = await app.organization();
    const git_repository = { url: `${server.url}/shop`, branch: 'main' };
    const { web } = await sourceOf(admin, { git_repository, dockerfile_path: 'Dockerfile' });
    ok(
      await admin.post(`/application/${web}/deploymentRestriction`, { mode: 'MATCH', type: 'PATH', value: 'web' }),
      201,
    );
    const hook = await webhookOf(admin, `${new URL(server.url).host}//shop`);
    const sources = createSources(app.platform);
    const loops = createPreviewLoops({ platform: app.platform, kinds: KINDS, sources }, newId());
    for (const loop of loops) loop.start();
    try {
      ok(await tell(hook, { head: first, baseCommit: base }), 202);
      expect(await settled(admin)).toMatchObject([{ outcome: 'NOT_AFFECTED' }]);
      ok(await tell(hook, { action: 'synchronize', head: second, baseCommit: base, at: 1 }), 202);
      const [preview] = await settled(admin);
      expect(preview).toMatchObject({ outcome: 'PREVIEWED', applied_commit: second });
      const list = () => admin.get(`/environment/${preview!.environment_id}/application`);
      const deployed = async () => ok(await list(), 200).results[0].git_repository;
      await expect.poll(async () => (await deployed()).deployed_commit_id).toBe(second);
      expect((await deployed()).branch).toBe('feature');
      ok(await tell(hook, { action: 'synchronize', head: third, baseCommit: base, at: 2 }), 202);
      expect(await settled(admin)).toMatchObject([{ applied_commit: third }]);
      expect((await deployed()).deployed_commit_id).toBe(second);
    } finally {
      await Promise.all(loops.map((loop) => loop.stop()));
    }
  },
);

test.each(['GITHUB', 'GITLAB'] as Sender[])(
  'of a pull request at %s what its base changed since then counts for nothing',
  { timeout: 60_000 },
  async (sender) => {
    const name = `shop-${sender.toLowerCase()}`;
    const repository = root.make(name);
    repository.commit({ Dockerfile: 'FROM x\n', 'web/index.js': 'one\n', 'docs/a.md': 'one\n' });
    repository.git('checkout', '-q', '-b', 'feature');
    const docs = repository.commit({ 'docs/a.md': 'two\n' });
    const web = repository.commit({ 'web/other.js': 'two\n' });
    repository.git('checkout', '-q', 'main');
    const baseCommit = repository.commit({ 'web/index.js': 'of the base\n' });
    const admin = await app.organization();
    const git_repository = { url: `${server.url}/${name}`, branch: 'main' };
    const source = await sourceOf(admin, { git_repository, dockerfile_path: 'Dockerfile' });
    const restriction = { mode: 'MATCH', type: 'PATH', value: 'web' };
    ok(await admin.post(`/application/${source.web}/deploymentRestriction`, restriction), 201);
    const hook = await webhookOf(admin, `${new URL(server.url).host}//${name}`);
    const loops = createPreviewLoops(
      { platform: app.platform, kinds: KINDS, sources: createSources(app.platform) },
      newId(),
    );
    for (const loop of loops) loop.start();
    try {
      ok(await tell(hook, { head: docs, baseCommit }, sender), 202);
      expect(await settled(admin)).toMatchObject([{ outcome: 'NOT_AFFECTED' }]);
      ok(await tell(hook, { action: 'synchronize', head: web, baseCommit, at: 1 }, sender), 202);
      expect(await settled(admin)).toMatchObject([{ outcome: 'PREVIEWED', applied_commit: web }]);
    } finally {
      await Promise.all(loops.map((loop) => loop.stop()));
    }
  },
);
