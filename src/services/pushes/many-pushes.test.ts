import { expect, test } from 'vitest';
import { sql } from '#platform/database/index.ts';
import { bodyOfPush, commit, headersOf, ZERO, usePushes } from '#services/pushes/pushes.fixture.ts';
import { useApp } from '#test/harness/app.ts';
import { makeRandom } from '#test/harness/random.ts';

const app = useApp();
const { environmentOf, applicationIn, webhookOf, call, worker, applied, requested } = usePushes(app);

test('of 1,000 pushes over 50 services none is lost and none deployed twice', { timeout: 120_000 }, async () => {
  const admin = await app.organization();
  const random = makeRandom(7);
  const environments = [await environmentOf(admin), await environmentOf(admin), await environmentOf(admin)];
  const repositories = Array.from({ length: 25 }, (_, n) => `shop${n}`);
  const services = [];
  for (let n = 0; n < 50; n++) {
    const repository = repositories[n % 25]!;
    const environment = environments[n % 3]!;
    const git_repository = { url: `https://git.invalid/acme/${repository}.git`, branch: 'main' };
    services.push({ repository, environment, id: await applicationIn(admin, environment, { git_repository }) });
  }
  const hooks = new Map<string, string>();
  for (const repository of repositories)
    hooks.set(repository, await webhookOf(admin, `git.invalid/acme/${repository}`));
  const heads = new Map<string, string>();
  const sendAll = async (names: string[]) => {
    for (const [n, repository] of names.entries()) {
      const after = commit(`${repository} ${heads.size} ${n} ${random.below(1e9)}`);
      const body = bodyOfPush({ before: heads.get(repository) ?? ZERO, after });
      heads.set(repository, after);
      const headers = headersOf('GITHUB', body);
      expect((await call(hooks.get(repository)!, body, headers)).status).toBe(202);
      // Providers repeat calls.
      if (random.below(10) === 0) expect((await call(hooks.get(repository)!, body, headers)).body.is_new).toBe(false);
    }
  };
  // Each repository has a sender of its own, as each provider calls in order.
  const send = (count: number) =>
    Promise.all(repositories.map((repository) => sendAll(Array.from({ length: count }, () => repository))));
  await send(32);
  worker();
  worker();
  await send(8);
  const rows = await applied(admin);
  expect(rows).toHaveLength(1_000);
  expect(rows.every(({ error }) => error === null)).toBe(true);
  for (const environment of environments) {
    // Nothing runs: all pushes stand in the one deployment that waits.
    const [waiting, ...more] = await requested(environment);
    expect(more).toEqual([]);
    const wanted = services.filter((one) => one.environment === environment);
    expect(waiting).toEqual(Object.fromEntries(wanted.map(({ id, repository }) => [id, heads.get(repository)])));
    const parts = await sql<{
      service_id: string;
    }>`select service_id from deployment_service where environment_id = ${environment}`.execute(app.db);
    expect(parts.rows.map(({ service_id }) => service_id).sort()).toEqual(wanted.map(({ id }) => id).sort());
  }
});
