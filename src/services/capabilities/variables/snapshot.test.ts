import type { KyselyPlugin } from 'kysely';
import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { resolveVariables, VariableError, type FrozenVariable } from '#deployments/model/variables.ts';
import { freezeVariables, removeUnusedSecretVersions, thawVariables } from '#services/capabilities/variables/index.ts';
import {
  listed,
  makeApplication,
  makeTree,
  pathOf,
  type Tree,
} from '#services/capabilities/variables/variables.fixture.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { freezeSeen } from '#test/harness/variables.ts';

const app = useApp();

const isOwn = ({ scope }: FrozenVariable): boolean => scope === 'APPLICATION';

const frozenOf = (admin: Actor, tree: Tree, service = tree.application): Promise<FrozenVariable[]> =>
  freezeSeen(app.context, admin, tree.environment, service);

async function valuesOf(admin: Actor, frozen: FrozenVariable[]): Promise<Record<string, string>> {
  const { variables } = resolveVariables(await thawVariables(app.context, admin.organizationId, frozen));
  const own = variables.filter(({ origin }) => origin.scope !== 'BUILT_IN');
  return Object.fromEntries(own.map(({ key, value }) => [key, value]));
}

describe('a snapshot of variables', () => {
  test('holds what each service sees, resolves to its values, and has no secret in it', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const password = ok(
      await admin.post(pathOf(tree, 'project', 'secret'), { key: 'PASSWORD', value: 's3cret-one' }),
      201,
    );
    const url = { key: 'URL', value: 'db://u:{{PASSWORD}}@{{QUARTERDECK_PROJECT_ID}}' };
    ok(await admin.post(pathOf(tree, 'environment'), url), 201);
    ok(
      await admin.post(`${pathOf(tree, 'application', 'secret')}/${password.id}/override`, { value: 's3cret-two' }),
      201,
    );
    ok(await admin.post(`/application/${tree.sibling}/environmentVariable`, { key: 'OWN', value: 'x' }), 201);
    const both = await freezeVariables(app.context, admin, tree.environment, [tree.application, tree.sibling]);
    expect(JSON.stringify([both.shared, ...both.own])).not.toContain('s3cret');
    expect(await valuesOf(admin, [...both.shared, ...both.own.get(tree.application)!])).toEqual({
      PASSWORD: 's3cret-two',
      URL: `db://u:s3cret-two@${tree.project}`,
    });
    const ofSibling = [...both.shared, ...both.own.get(tree.sibling)!];
    expect(await valuesOf(admin, ofSibling)).toEqual({
      OWN: 'x',
      PASSWORD: 's3cret-one',
      URL: `db://u:s3cret-one@${tree.project}`,
    });
    const { secrets } = resolveVariables(await thawVariables(app.context, admin.organizationId, ofSibling));
    expect(secrets).toEqual([`db://u:s3cret-one@${tree.project}`, 's3cret-one']);
  });

  test('keeps the versions that it names, whatever is edited or deleted after it', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'application', 'secret');
    const secret = ok(await admin.post(path, { key: 'S', value: 'one' }), 201);
    const before = await frozenOf(admin, tree);
    ok(await admin.put(`${path}/${secret.id}`, { key: 'S', value: 'two' }), 200);
    ok(await admin.put(`${path}/${secret.id}`, { key: 'S', description: 'no new value' }), 200);
    const after = await frozenOf(admin, tree);
    expect((await admin.delete(`${path}/${secret.id}`)).status).toBe(204);
    expect([await valuesOf(admin, before), await valuesOf(admin, after)]).toEqual([{ S: 'one' }, { S: 'two' }]);
    expect(await valuesOf(admin, await frozenOf(admin, tree))).toEqual({});
    expect([before, after].map((frozen) => frozen.find(({ key }) => key === 'S')!.secret!.version)).toEqual([1, 2]);
  });

  test('takes as many statements for many services as for one', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const services = [tree.application];
    for (let n = 0; n < 8; n++) services.push(await makeApplication(admin, tree.environment, `more${n}`));
    let statements = 0;
    const counter: KyselyPlugin = {
      transformQuery: ({ node }) => {
        statements++;
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const context = { ...app.context, db: app.db.withPlugin(counter) };
    await freezeVariables(context, admin, tree.environment, services.slice(0, 1));
    const forOne = statements;
    await freezeVariables(context, admin, tree.environment, services);
    expect([forOne, statements - forOne]).toEqual([2, 2]);
  });

  test('of another organization is empty', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const tree = await makeTree(admin);
    ok(await admin.post(pathOf(tree, 'project'), { key: 'A', value: 'a' }), 201);
    expect(await freezeVariables(app.context, stranger, tree.environment, [tree.application])).toEqual({
      shared: [],
      own: new Map(),
    });
  });

  test('with an external secret does not resolve, and the error names its key and its name upstream', async () => {
    const admin = await app.organization();
    const frozen: FrozenVariable = {
      id: newId(),
      key: 'EXT',
      scope: 'PROJECT',
      external: { access: newId(), name: 'prod/db' },
    };
    const error = await valuesOf(admin, [frozen]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(VariableError);
    expect((error as Error).message).toMatch(/EXT .*"prod\/db".*can't be asked/);
  });

  test('has the passwords of databases sealed, and their URLs whole once thawed', async () => {
    const admin = await app.organization();
    const sealed = await app.platform.vault.seal(app.db, admin.organizationId, 'service/x/database_password', 'p/w');
    const frozen: FrozenVariable = {
      id: newId(),
      key: 'DATABASE_URL',
      scope: 'PROJECT',
      isSecret: true,
      sealed: {
        place: 'service/x/database_password',
        content: sealed.toString('base64'),
        url: { before: 'redis://u:', after: '@h:1/0' },
      },
    };
    expect(await valuesOf(admin, [frozen])).toEqual({ DATABASE_URL: 'redis://u:p%2Fw@h:1/0' });
  });
});

describe('housekeeping of secrets', () => {
  const at = (hours: number) => ({
    ...app.context,
    clock: { now: () => new Date(Date.now() + hours * 3_600_000) },
  });
  const versionsOf = async (id: string) =>
    (
      await app.db
        .selectFrom('variable_secret_version')
        .select('version')
        .where('variable_id', '=', id)
        .orderBy('version')
        .execute()
    ).map((row) => row.version);

  test('removes what nothing needs an hour after it was superseded, and neither present values nor what snapshots name', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const path = pathOf(tree, 'application', 'secret');
    const { id } = ok(await admin.post(path, { key: 'S', value: '1' }), 201);
    const gone = ok(await admin.post(path, { key: 'GONE', value: '1' }), 201);
    const pathOfShared = pathOf(tree, 'environment', 'secret');
    const shared = ok(await admin.post(pathOfShared, { key: 'SHARED', value: '1' }), 201);
    const snapshots: FrozenVariable[][] = [];
    for (const value of ['2', '3', '4']) {
      snapshots.push(await frozenOf(admin, tree));
      ok(await admin.put(`${path}/${id}`, { key: 'S', value }), 200);
      ok(await admin.put(`${pathOfShared}/${shared.id}`, { key: 'SHARED', value }), 200);
    }
    await keepRelease(admin, tree, snapshots[0]!);
    await keepDeployment(admin, tree, snapshots[1]!);
    ok(await admin.delete(`${path}/${gone.id}`), 204);
    await removeUnusedSecretVersions(at(0));
    await removeUnusedSecretVersions(at(0.9));
    expect(await versionsOf(id)).toEqual([1, 2, 3, 4]);
    await removeUnusedSecretVersions(at(1.1));
    expect(await versionsOf(id)).toEqual([1, 2, 4]);
    // What all services of an environment see, deployments keep for the releases that they made.
    expect(await versionsOf(shared.id)).toEqual([2, 4]);
    // The kept snapshots name the deleted secret too.
    expect(await versionsOf(gone.id)).toEqual([1]);
    await app.db.deleteFrom('release').where('service_id', '=', tree.application).execute();
    await app.db.deleteFrom('deployment').where('environment_id', '=', tree.environment).execute();
    await removeUnusedSecretVersions(at(1.2));
    expect([await versionsOf(id), await versionsOf(gone.id)]).toEqual([[4], []]);
    expect(await valuesOf(admin, await frozenOf(admin, tree))).toEqual({ S: '4', SHARED: '4' });
  });

  async function keepDeployment(admin: Actor, tree: Tree, variables: FrozenVariable[]): Promise<string> {
    const cluster = await app.db
      .selectFrom('environment')
      .select('cluster_id')
      .where('id', '=', tree.environment)
      .executeTakeFirstOrThrow();
    const id = newId();
    await app.db
      .insertInto('deployment')
      .values({
        id,
        organization_id: admin.organizationId,
        environment_id: tree.environment,
        cluster_id: cluster.cluster_id,
        number: 1,
        action: 'DEPLOY',
        trigger: 'DEPLOY',
        whole_environment: false,
        status: 'ENDED',
        snapshot: JSON.stringify({
          services: [{ serviceId: tree.application, variables: variables.filter(isOwn) }],
          shared: variables.filter((one) => !isOwn(one)),
        }),
        requested_by_name: 'test',
        origin: 'API',
      })
      .execute();
    return id;
  }

  async function keepRelease(admin: Actor, tree: Tree, variables: FrozenVariable[]): Promise<void> {
    await app.db
      .insertInto('release')
      .values({
        id: newId(),
        organization_id: admin.organizationId,
        service_id: tree.application,
        deployment_id: newId(),
        service_version: 1,
        environment_version: 1,
        project_version: 1,
        snapshot: JSON.stringify({ serviceId: tree.application, variables: variables.filter(isOwn) }),
      })
      .execute();
  }
});

describe('the effective variables of a service', () => {
  test('are the one value of each key, expanded, with where it comes from; secrets without', async () => {
    const admin = await app.organization();
    const tree = await makeTree(admin);
    const host = ok(await admin.post(pathOf(tree, 'project'), { key: 'HOST', value: 'h' }), 201);
    const override = ok(await admin.post(`${pathOf(tree, 'environment')}/${host.id}/override`, { value: 'eh' }), 201);
    const path = pathOf(tree, 'application');
    ok(await admin.post(path, { key: 'URL', value: 'http://{{HOST}}/{{NOPE}}' }), 201);
    ok(await admin.post(pathOf(tree, 'application', 'secret'), { key: 'KEY', value: 'hidden' }), 201);
    ok(await admin.post(path, { key: 'WITH', value: 'k={{KEY}}' }), 201);
    ok(
      await admin.post(path, {
        key: 'CONF',
        value: 'to {{HOST}}',
        mount_path: '/c',
        enable_interpolation_in_file: true,
      }),
      201,
    );
    ok(await admin.post(path, { key: 'A', value: '{{B}}' }), 201);
    ok(await admin.post(path, { key: 'B', value: '{{A}}' }), 201);
    ok(await admin.post(pathOf(tree, 'application', 'secret'), { key: 'LOOP', value: '{{LOOP}}hidden' }), 201);
    const answer = ok(await admin.get(`/service/${tree.application}/effectiveVariables`), 200);
    expect(JSON.stringify(answer)).not.toContain('hidden');
    const byKey = Object.fromEntries(answer.results.map((one: { key: string }) => [one.key, one]));
    expect(byKey.HOST).toEqual({
      key: 'HOST',
      value: 'eh',
      is_secret: false,
      mount_path: null,
      error: null,
      origin: { id: override.id, scope: 'ENVIRONMENT', variable_type: 'OVERRIDE' },
    });
    expect(byKey.URL).toMatchObject({ value: 'http://eh/{{NOPE}}' });
    expect(byKey.KEY).toMatchObject({ value: null, is_secret: true });
    expect(byKey.WITH).toMatchObject({ value: null, is_secret: true });
    expect(byKey.CONF).toMatchObject({ value: 'to eh', mount_path: '/c', origin: { variable_type: 'FILE' } });
    expect(byKey.A).toMatchObject({ value: null, error: expect.stringContaining('A -> B -> A') });
    expect(byKey.LOOP).toMatchObject({ value: null, is_secret: true, error: expect.stringContaining('LOOP -> LOOP') });
    expect(answer.warnings).toEqual(['URL names {{NOPE}}, which is no variable here: it stays as written.']);
    expect(byKey.QUARTERDECK_PROJECT_ID).toMatchObject({ value: tree.project, origin: { scope: 'BUILT_IN' } });
    expect(await listed(admin, path, 'HOST')).toMatchObject({ value: 'h' });
  });

  test('are seen by whoever may read the service, of their own organization only', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const tree = await makeTree(admin);
    const url = `/service/${tree.application}/effectiveVariables`;
    ok(await (await admin.withScope('READ')).get(url), 200);
    expect((await stranger.get(url)).status).toBe(404);
  });
});
