import { describe, expect, test } from 'vitest';
import { makeApplication, makeEnvironment, PORTS } from '#services/capabilities/service/links/links.fixture.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

describe('links of an environment', () => {
  test('are those of all its services, and of no other', async () => {
    const admin = await app.organization();
    const [environmentId, other] = [await makeEnvironment(admin), await makeEnvironment(admin)];
    const first = await makeApplication(admin, environmentId, 'a', PORTS.slice(0, 1));
    const second = await makeApplication(admin, environmentId, 'b', PORTS.slice(1, 2));
    await makeApplication(admin, environmentId, 'quiet', []);
    await makeApplication(admin, other, 'c', PORTS);
    const url = `/environment/${environmentId}/link`;
    const all = ok(await admin.get(url), 200);
    expect(all.results.map((link: { service_id: string }) => link.service_id)).toEqual([first.id, second.id]);
    expect(ok(await admin.get(`${url}?page=2&page_size=1`), 200).results).toEqual([all.results[1]]);
  });

  test('are not there for another organization', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const environmentId = await makeEnvironment(admin);
    expect((await stranger.get(`/environment/${environmentId}/link`)).status).toBe(404);
  });
});
