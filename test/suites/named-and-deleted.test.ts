import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { exampleBody, makeExample } from '#test/harness/engine.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';

const app = useApp();

interface Named {
  table: 'credentials' | 'container_registry' | 'helm_repository' | 'git_token';
  /** Collection of the organization in which it is created, with `body`. */
  list: string;
  body: object;
  /** Returns a request that names it, and the field with the name. */
  user: (admin: Actor, environmentId: string, id: string) => [url: string, body: object, field: string];
}

const role = { region: 'eu-west-3', role_arn: 'arn:aws:iam::1:role/r' };
const registry = { name: 'r', kind: 'ECR', url: 'https://registry.invalid', config: role };

const NAMED: Named[] = [
  {
    table: 'credentials',
    list: 'onPremise/credentials',
    body: { name: 'rack' },
    user: (admin, _environmentId, id) => [
      `/organization/${admin.organizationId}/cluster`,
      {
        name: newId(),
        cloud_provider: 'ON_PREMISE',
        region: 'here',
        kubernetes: 'SELF_MANAGED',
        cloud_provider_credentials: {
          cloud_provider: 'ON_PREMISE',
          credentials: { id, name: 'rack' },
          region: 'here',
        },
      },
      'cloud_provider_credentials.credentials.id',
    ],
  },
  {
    table: 'container_registry',
    list: 'containerRegistry',
    body: registry,
    user: (_admin, environmentId, id) => [
      `/environment/${environmentId}/container`,
      { name: newId(), registry_id: id, image_name: 'acme/web', tag: `sha256:${'0'.repeat(64)}`, healthchecks: {} },
      'registry_id',
    ],
  },
  {
    table: 'helm_repository',
    list: 'helmRepository',
    body: { ...registry, kind: 'OCI_ECR', skip_tls_verification: false },
    user: (_admin, environmentId, id) => [
      `/environment/${environmentId}/helm`,
      {
        name: newId(),
        source: { helm_repository: { repository: id, chart_name: 'web', chart_version: '1.0.0' } },
        arguments: [],
        values_override: {},
      },
      'source.helm_repository.repository',
    ],
  },
  {
    table: 'git_token',
    list: 'gitToken',
    body: { name: 'git', type: 'GITHUB', token: 'a-git-token', expired_at: '2020-01-01T00:00:00Z' },
    user: (_admin, environmentId, id) => {
      const { git_repository, ...body } = exampleBody({ name: newId() });
      return [
        `/environment/${environmentId}/application`,
        { ...body, git_repository: { ...git_repository, git_token_id: id } },
        'git_repository.git_token_id',
      ];
    },
  },
];

test.each(NAMED)(
  'a request that names a row of $table while it is deleted is 400 at its field',
  async ({ table, list, body, user }) => {
    const admin = await app.organization();
    const { environment } = await makeExample(admin);
    const { id } = ok(await admin.post(`/organization/${admin.organizationId}/${list}`, body), 201);
    const [url, using, field] = user(admin, environment.id, id);
    const asked = await app.db.transaction().execute(async (deletion) => {
      await deletion.deleteFrom(table).where('id', '=', id).execute();
      const answer = admin.post(url, using);
      await expect.poll(() => sessionsThatWait(app.db)).toBe(1);
      // In a list, because a returned promise would be awaited here, under the lock.
      return [answer];
    });
    expect(ok(await asked[0]!, 400).errors.map((error: { field: string }) => error.field)).toEqual([field]);
  },
);
