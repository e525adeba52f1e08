import { expect, test } from 'vitest';
import { packedOf } from '#kernel/parsing/archive.fixture.ts';
import { commitIndex } from '#runtimes/tools/git/git.fixture.ts';
import { useForks } from '#services/previews/forks.fixture.ts';
import { usePreviews } from '#services/previews/previews.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { useEngine } from '#test/harness/engine.ts';
import { markAsFork } from '#test/harness/fork.ts';

const app = useApp({ QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' });
useEngine(app, {}, undefined, { pretendsSources: true });
const fixture = usePreviews(app);
const { place, work, settled, listOf, runs } = useForks(app, fixture);
const FORK = { headRepository: 2 };

test(
  'in the preview of a fork no call names a commit of a stranger that nobody approved, for whatever service',
  { timeout: 90_000 },
  async () => {
    const { admin, environment, hook, push, repository, git_repository } = await place();
    const docs = {
      name: 'docs',
      git_repository: { ...git_repository, branch: 'stable' },
      dockerfile_path: 'Dockerfile',
    };
    repository.git('branch', 'stable');
    const stable = repository.git('rev-parse', 'stable');
    ok(await admin.post(`/environment/${environment}/application`, docs), 201);
    ok(await admin.post(`/environment/${environment}/deploy`), 200);
    await runs(admin, environment, stable, 'docs');
    const later = repository.commit({ 'later.md': 'x\n' });
    repository.git('branch', '--force', 'stable', later);
    work();
    const approved = push({ 'index.js': 'one\n' });
    ok(await fixture.tell(hook, { ...FORK, head: approved }), 202);
    await settled(admin);
    const [waiting] = await listOf(admin, environment);
    ok(await admin.put(`/environment/${environment}/forkPreview/${waiting.id}/approval`, { commit_id: approved }), 200);
    const [made] = await settled(admin);
    const preview = made!.environment_id!;
    // The commit that the source runs, although its branch went on since.
    const { id } = await runs(admin, preview, stable, 'docs');
    const strange = push({ 'index.js': 'two\n' }, 'refs/pull/8/head');

    const deployer = await admin.withScope('DEPLOY');
    const deploy = (git_commit_id: string) => deployer.post(`/application/${id}/deploy?wait=40`, { git_commit_id });
    for (const commit of [strange, strange.slice(0, 7), approved.slice(0, 12)])
      expect(ok(await deploy(commit), 409).message).toContain(approved);
    const applications = [{ application_id: id, git_commit_id: strange }];
    ok(await deployer.post(`/environment/${preview}/service/deploy`, { applications }), 409);
    const own = { ...docs, name: 'mine', git_repository };
    const added = ok(await admin.post(`/environment/${preview}/application`, own), 201);
    ok(await deployer.post(`/application/${added.id}/deploy`, { git_commit_id: strange }), 409);
    ok(await deployer.post(`/application/${added.id}/deploy`, { git_commit_id: stable }), 409);
    await runs(admin, preview, stable, 'docs');

    ok(await deploy(stable), 200);
    await runs(admin, preview, stable, 'docs');
    ok(await deploy(approved), 200);
    await runs(admin, preview, approved, 'docs');
    ok(await deployer.post(`/application/${id}/deploy?wait=40`, {}), 200);
    await runs(admin, preview, later, 'docs');
    // Elsewhere callers name what they want.
    ok(await admin.post(`/application/${(await runs(admin, environment, stable, 'docs')).id}/deploy`, { git_commit_id: strange }), 200); // prettier-ignore
  },
);

test('in the preview of a fork submodules are fetched without the access of this installation, of whatever branch', async () => {
  const { admin, web, environment, repository } = await place();
  const text = '[submodule "lib"]\n\tpath = lib\n\turl = ssh://git@127.0.0.1:1/acme/app\n';
  const head = repository.commit({ '.gitmodules': text });
  repository.git('update-index', '--add', '--cacheinfo', `160000,${head},lib`);
  commitIndex(repository);
  await markAsFork(app.db, environment);
  expect(ok(await admin.post(`/application/${web}/deploy?wait=40`), 200).state).toBe('BUILD_ERROR');
  const log = JSON.stringify(ok(await admin.get(`/environment/${environment}/logs`), 200));
  expect(log).toContain('ssh://git@127.0.0.1:1/acme/app of a pull request is not fetched');
});

test(
  'in the preview of a fork no rollback goes back to a commit whose approval was replaced, and no uploaded folder runs',
  { timeout: 90_000 },
  async () => {
    const { admin, environment, hook, push } = await place();
    work();
    const approve = async (commit: string, action: 'opened' | 'synchronize') => {
      ok(await fixture.tell(hook, { ...FORK, action, head: commit, at: action === 'opened' ? 0 : 1 }), 202);
      await settled(admin);
      const [waiting] = await listOf(admin, environment);
      ok(await admin.put(`/environment/${environment}/forkPreview/${waiting.id}/approval`, { commit_id: commit }), 200);
      const [made] = await settled(admin);
      return runs(admin, made!.environment_id!, commit);
    };
    const first = push({ 'index.js': 'one\n' });
    const { id } = await approve(first, 'opened');
    const historyOf = async () => ok(await admin.get(`/application/${id}/deploymentHistoryV2`), 200).results;
    const [{ identifier }] = await historyOf();
    const execution_id = identifier.execution_id;
    ok(await admin.post(`/application/${id}/rollback?wait=40`, { execution_id }), 200);
    const second = push({ 'index.js': 'two\n' });
    await approve(second, 'synchronize');
    expect(ok(await admin.post(`/application/${id}/rollback`, { execution_id }), 409).message).toContain(second);
    const archive = await packedOf(['Dockerfile', 'FROM x\n']);
    ok(await admin.post(`/application/${id}/source`, archive, { 'content-type': 'application/gzip' }), 409);
    await runs(admin, (await admin.get(`/application/${id}`)).body.environment.id, second);
  },
);
