import { newId } from '#kernel/ids.ts';
import { resolveVariables } from '#deployments/model/variables.ts';
import { thawVariables } from '#services/capabilities/variables/index.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';
import { freezeSeen } from '#test/harness/variables.ts';

export const makeProject = async (admin: Actor) =>
  ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201).id as string;

export const makeEnvironment = async (admin: Actor, project: string, name = newId()) =>
  ok(await admin.post(`/project/${project}/environment`, { name }), 201).id as string;

export const makeApplication = async (admin: Actor, environment: string, name: string, more: object = {}) =>
  ok(
    await admin.post(`/environment/${environment}/application`, {
      name,
      git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main' },
      ports: [{ internal_port: 3000, publicly_accessible: true }],
      ...more,
    }),
    201,
  );

/** Records of a list that stand on the holder itself, by key. */
export async function recordsOf(admin: Actor, path: string, scope: string) {
  const { results } = ok(await admin.get(path), 200);
  return Object.fromEntries(
    results.filter((one: any) => one.scope === scope).map((one: any) => [one.key, one]),
  ) as Record<string, any>;
}

/** Returns functions that read from the database what the API does not answer. */
export function readersOf(app: TestApp) {
  const rowOf = (id: string) => app.db.selectFrom('service').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

  /** Returns the values that a deployment would give the service, secrets decrypted, without the built-in variables. */
  async function valuesOf(id: string) {
    const { organization_id: organizationId, environment_id } = await rowOf(id);
    const frozen = await freezeSeen(app.context, { organizationId }, environment_id, id);
    const { variables, files } = resolveVariables(await thawVariables(app.context, organizationId, frozen));
    const own = variables.filter(({ origin }) => origin.scope !== 'BUILT_IN');
    return { ...Object.fromEntries(own.map(({ key, value }) => [key, value])), ...Object.fromEntries(files.map((file) => [file.path, file.content])) }; // prettier-ignore
  }

  const eventsOf = (id: string) =>
    app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute();

  return { rowOf, valuesOf, eventsOf };
}
