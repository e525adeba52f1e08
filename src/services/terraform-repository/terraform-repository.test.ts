import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';

const root = makeRepositoryRoot();
afterAll(() => root.remove());
const app = useApp({ QUARTERDECK_LOCAL_GIT_ROOTS: root.folder });

const parse = (admin: Actor, git_repository: object) =>
  admin.post(`/organization/${admin.organizationId}/parseTerraformVariablesFromGitRepo`, { git_repository });
const list = (admin: Actor, git_repository: object, mode: object) =>
  admin.post(`/organization/${admin.organizationId}/listTfVarsFilesFromGitRepo`, { git_repository, mode });

const FILES = {
  'infra/main.tf': 'resource "terraform_data" "x" {\n  input = var.region\n}\n',
  'infra/variables.tf': `
variable "region" {
  type        = string
  description = "Where it runs"
  default     = "eu-west-3"
}
variable "password" {
  sensitive = true
  nullable  = false
}
variable "tags" {
  type    = map(string)
  default = { a = "b" }
}
`,
  'infra/extra.tf.json': '{"variable": {"size": {"default": 3}, "nothing": {"default": null}}}',
  'infra/module/variables.tf': 'variable "inner" {}\n',
  'infra/prod.tfvars': 'region = "us-east-1"\ntags = { a = 1 }\nempty = null\n',
  'infra/env/dev.auto.tfvars.json': '{"region": "local", "size": 2}',
  'other.tfvars': 'region = "nowhere"\n',
};

describe('the variables of a Terraform module', () => {
  test('are those that the files of its folder declare', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit(FILES);
    const answer = await parse(admin, { url: repository.url, branch: 'main', root_path: '/infra' });
    const plain = { sensitive: false, nullable: true, description: null };
    expect(ok(answer, 200).results).toEqual([
      { ...plain, key: 'size', default: '3', source: 'infra/extra.tf.json' },
      { ...plain, key: 'nothing', default: null, source: 'infra/extra.tf.json' },
      { ...plain, key: 'password', sensitive: true, nullable: false, source: 'infra/variables.tf' },
      { ...plain, key: 'region', default: 'eu-west-3', description: 'Where it runs', source: 'infra/variables.tf' },
      { ...plain, key: 'tags', default: '{"a":"b"}', source: 'infra/variables.tf' },
    ]);
    expect(ok(await parse(admin, { url: repository.url, branch: 'main' }), 200).results).toEqual([]);
  });

  test('are refused with file and line when a file cannot be read', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit({ 'a.tf': 'variable "x" {\n  default = "\n}\n', 'b.tf.json': '{' });
    expect(ok(await parse(admin, { url: repository.url, branch: 'main' }), 400).message).toBe(
      'a.tf: line 2: Invalid multi-line string: Quoted strings may not be split over multiple lines. To produce a multi-line string, either use the \\n escape to represent a newline character or use the "heredoc" multi-line template syntax.',
    );
  });

  test('are refused where the repository cannot be read, with the reason', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit(FILES);
    for (const [source, message] of [
      [{ url: repository.url, branch: 'nowhere' }, 'nowhere'],
      [{ url: '/etc', branch: 'main' }, 'QUARTERDECK_LOCAL_GIT_ROOTS'],
      [{ url: repository.url, branch: 'main', root_path: '../x' }, 'root_path'],
      [{ url: repository.url, branch: 'main', git_token_id: newId() }, 'git_token_id'],
    ] as const) {
      const answer = ok(await parse(admin, source), 400);
      expect(answer.message).toContain(message);
      expect(answer.message).not.toMatch(/exist/);
    }
  });
});

describe('files of Terraform variables', () => {
  test('are found in the folder and below it', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit(FILES);
    const source = { url: repository.url, branch: 'main', root_path: 'infra/' };
    expect(ok(await list(admin, source, { type: 'AutoDiscover' }), 200).results).toEqual([
      { source: 'infra/env/dev.auto.tfvars.json', variables: { region: 'local', size: '2' } },
      { source: 'infra/prod.tfvars', variables: { region: 'us-east-1', tags: '{"a":1}', empty: 'null' } },
    ]);
  });

  test('are those that are named, from the root or from the folder', async () => {
    const admin = await app.organization();
    const repository = root.make();
    repository.commit(FILES);
    const source = { url: repository.url, branch: 'main', root_path: 'infra' };
    const named = (...paths: string[]) => list(admin, source, { type: 'SpecificPaths', paths });
    const { results } = ok(await named('/other.tfvars', 'prod.tfvars'), 200);
    expect(results.map((file: { source: string }) => file.source)).toEqual(['other.tfvars', 'infra/prod.tfvars']);
    for (const wrong of ['none.tfvars', '../x.tfvars', '-x'])
      expect(ok(await named(wrong), 400).errors[0].field).toBe('mode.paths[0]');
    ok(await list(admin, source, { type: 'SpecificPaths' }), 400);
    ok(await list(admin, source, { type: 'Guess' }), 400);
  });
});

test('reading repositories takes somebody who may make services somewhere', async () => {
  const admin = await app.organization();
  const repository = root.make();
  repository.commit(FILES);
  const source = { url: repository.url, branch: 'main' };
  ok(await parse(await admin.withScope('DEPLOY'), source), 403);
  ok(await parse(await admin.withScope('WRITE'), source), 200);
  ok(await parse({ ...(await app.organization()), organizationId: admin.organizationId }, source), 404);
});
