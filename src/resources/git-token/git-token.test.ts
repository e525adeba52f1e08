import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { openTokenCredentials } from '#resources/git-token/index.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const urlOf = (admin: Actor) => `/organization/${admin.organizationId}`;
const tokensOf = (admin: Actor) => `${urlOf(admin)}/gitToken`;
const SECRET = 'ghp_very-secret-0123456789';
const BODY = { name: 'bot', description: 'd', type: 'GITHUB', token: SECRET };

const stored = async (id: string) => {
  const row = await app.db.selectFrom('git_token').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  return app.platform.vault.open(app.db, row.organization_id, `git_token/${id}/token`, row.token);
};

describe('a git token', () => {
  test('is kept encrypted, and its secret is answered nowhere', async () => {
    const admin = await app.organization();
    const answer = await admin.post(tokensOf(admin), BODY);
    const made = ok(answer, 201);
    expect(made).toMatchObject({
      name: 'bot',
      type: 'GITHUB',
      git_api_url: 'https://api.github.com',
      associated_services_count: 0,
    });
    expect(await stored(made.id)).toBe(SECRET);
    const [row, events] = [
      await app.db.selectFrom('git_token').selectAll().where('id', '=', made.id).executeTakeFirstOrThrow(),
      await app.db.selectFrom('audit_event').selectAll().where('target_id', '=', made.id).execute(),
    ];
    const seen = [answer.body, (await admin.get(tokensOf(admin))).body, events];
    expect(JSON.stringify(seen)).not.toContain(SECRET);
    expect(row.token.includes(SECRET)).toBe(false);
    expect(ok(await admin.get(`${tokensOf(admin)}/${made.id}`), 200)).toEqual(made);
  });

  test('is edited, keeps its secret when none is given, and takes a new one', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(tokensOf(admin), { ...BODY, expired_at: '2030-02-03T00:00:00Z' }), 201);
    const url = `${tokensOf(admin)}/${made.id}`;
    const edited = ok(await admin.put(url, { name: 'bot 2', type: 'GITHUB', workspace: 'w' }), 200);
    expect(edited).toMatchObject({ name: 'bot 2', description: 'd', workspace: 'w', expired_at: '2030-02-03' });
    expect(await stored(made.id)).toBe(SECRET);
    ok(await admin.put(url, { name: 'bot', type: 'GITLAB', token: 'other' }), 200);
    expect(ok(await admin.get(url), 200)).toMatchObject({ type: 'GITLAB', git_api_url: 'https://gitlab.com/api/v4' });
    expect(await stored(made.id)).toBe('other');
  });

  test('does not follow to another address without being given again', async () => {
    const admin = await app.organization();
    const made = ok(await admin.post(tokensOf(admin), BODY), 201);
    const url = `${tokensOf(admin)}/${made.id}`;
    for (const change of [{ git_api_url: 'https://attacker.example' }, { type: 'GITLAB' }])
      expect(ok(await admin.put(url, { name: 'bot', type: 'GITHUB', ...change }), 400).errors[0].field).toBe('token');
    ok(await admin.put(url, { ...BODY, git_api_url: 'https://git.example/api' }), 200);
  });

  test('may share its name, and is refused without what it needs', async () => {
    const admin = await app.organization();
    for (const _ of [1, 2]) ok(await admin.post(tokensOf(admin), BODY), 201);
    expect(
      ok(await admin.post(tokensOf(admin), { name: 'x' }), 400).errors.map((one: { field: string }) => one.field),
    ).toEqual(['type', 'token']);
    for (const wrong of [{ type: 'SVN' }, { git_api_url: 'file:///etc/passwd' }, { name: ' ' }])
      ok(await admin.post(tokensOf(admin), { ...BODY, ...wrong }), 400);
  });

  test('that services use stays, and tells which they are', async () => {
    const admin = await app.organization();
    const token = ok(await admin.post(tokensOf(admin), BODY), 201);
    const project = ok(await admin.post(`${urlOf(admin)}/project`, { name: 'shop' }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
    const git_repository = { url: 'https://github.com/o/r.git', branch: 'main', git_token_id: token.id };
    const application = ok(
      await admin.post(`/environment/${environment.id}/application`, { name: 'app', git_repository }),
      201,
    );
    expect(ok(await admin.get(`${tokensOf(admin)}/${token.id}/associatedServices`), 200).results).toEqual([
      {
        project_id: project.id,
        project_name: 'shop',
        environment_id: environment.id,
        environment_name: 'dev',
        service_id: application.id,
        service_name: 'app',
        service_type: 'APPLICATION',
      },
    ]);
    expect(ok(await admin.get(tokensOf(admin)), 200).results[0].associated_services_count).toBe(1);
    ok(await admin.delete(`${tokensOf(admin)}/${token.id}`), 409);
    const unused = ok(await admin.post(tokensOf(admin), BODY), 201);
    ok(await admin.delete(`${tokensOf(admin)}/${unused.id}`), 204);
    ok(await admin.get(`${tokensOf(admin)}/${unused.id}`), 404);
  });

  test('that a cluster names stays until the cluster names it no more', async () => {
    const admin = await app.organization();
    const token = ok(await admin.post(tokensOf(admin), BODY), 201);
    const git_repository = { url: 'https://github.com/acme/eks.git', git_token_id: token.id };
    const body = { name: 'eks', region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'fake' };
    const eks = { eks_anywhere_parameters: { git_repository, yaml_file_path: 'eks.yaml' } };
    const url = `${urlOf(admin)}/cluster`;
    const cluster = ok(await admin.post(url, { ...body, infrastructure_charts_parameters: eks }), 201);
    const refused = ok(await admin.delete(`${tokensOf(admin)}/${token.id}`), 409);
    expect(refused.message).toBe(`The cluster eks uses the git token ${token.name}: give it another first.`);
    ok(await admin.put(`${url}/${cluster.id}`, { ...body, infrastructure_charts_parameters: {} }), 200);
    ok(await admin.delete(`${tokensOf(admin)}/${token.id}`), 204);
  });

  test('is changed by administrators only, and is not there for another organization', async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    const { id } = ok(await admin.post(tokensOf(admin), BODY), 201);
    const writer = await admin.withScope('WRITE');
    ok(await writer.get(`${tokensOf(admin)}/${id}`), 200);
    ok(await writer.post(tokensOf(admin), BODY), 403);
    ok(await writer.put(`${tokensOf(admin)}/${id}`, BODY), 403);
    ok(await writer.delete(`${tokensOf(admin)}/${id}`), 403);
    for (const url of [`${tokensOf(admin)}/${id}`, `${tokensOf(other)}/${id}`, `${tokensOf(other)}/${newId()}`])
      ok(await other.get(url), 404);
  });
});

test('a git token that is gone is refused with a sentence for people', async () => {
  const { organizationId } = await app.organization();
  const opened = openTokenCredentials(app.platform, organizationId, newId(), () => null);
  await expect(opened).rejects.toMatchObject({ name: 'RuntimeError', code: 'refused', message: expect.stringContaining('is gone') }); // prettier-ignore
});
