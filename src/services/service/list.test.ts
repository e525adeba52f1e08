import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

async function makeEnvironment(admin: Actor) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201).id as string;
}

test('the services of an environment are answered as each of them is by itself, in creation order and in pages', async () => {
  const admin = await app.organization();
  const [environmentId, other] = [await makeEnvironment(admin), await makeEnvironment(admin)];
  const make = async (environment: string, name: string) =>
    ok(
      await admin.post(`/environment/${environment}/application`, {
        name,
        git_repository: { url: 'https://github.com/acme/shop.git' },
        ports: [{ internal_port: 80, publicly_accessible: true }],
      }),
      201,
    );
  const services = [await make(environmentId, 'b'), await make(environmentId, 'a')];
  await make(other, 'elsewhere');
  const url = `/environment/${environmentId}/services`;
  const list = ok(await admin.get(url), 200);
  expect(list.results).toEqual(
    await Promise.all(services.map(async ({ id }) => ok(await admin.get(`/application/${id}`), 200))),
  );
  expect(list.pagination).toEqual({ page: 1, page_size: 2, total_count: 2, total_pages: 1 });
  const second = ok(await admin.get(`${url}?page=2&page_size=1`), 200);
  expect(second).toEqual({
    results: [list.results[1]],
    pagination: { page: 2, page_size: 1, total_count: 2, total_pages: 2 },
  });
  expect((await (await app.organization()).get(url)).status).toBe(404);
});
