import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';
import { noPooler, startPooler, type Pooler } from '#test/harness/pgbouncer.ts';

describe.skipIf(noPooler)('with PgBouncer in transaction mode', () => {
  const { home, settings: direct, here } = useInstallation('pooler');
  let pooler: Pooler;
  let settings: Record<string, string>;
  beforeAll(async () => {
    const database = new URL(direct.DATABASE_URL!).pathname.slice(1);
    pooler = await startPooler({ ...inject('postgres'), database }, 8);
    settings = { ...direct, DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: direct.DATABASE_URL! };
  });
  afterAll(() => pooler.stop());

  test('without the direct URL doctor and every command name the setting that is missing', async () => {
    const bare = { ...settings, DATABASE_DIRECT_URL: '' };
    const [doctor, migrate] = [await runProgram(['doctor'], bare), await runProgram(['migrate'], bare)];
    expect(doctor.status).toBe(1);
    expect(doctor.stdout).toMatch(/✗ PostgreSQL +DATABASE_URL leads through a pooler: set DATABASE_DIRECT_URL/);
    expect(migrate).toMatchObject({ status: 1, stderr: expect.stringContaining('set DATABASE_DIRECT_URL') });
  });

  test('the service deploys 20 environments at once, follows them by notifications, and goes on when all of its connections are cut', async () => {
    const service = await startService({
      ...settings,
      QUARTERDECK_WORKER_SLOTS: '8',
      QUARTERDECK_LOCAL_GIT_ROOTS: path.dirname(inject('example')),
    });
    const token = readFileSync(path.join(home, 'admin-token'), 'utf8').trim();
    const ask = async (method: string, route: string, body?: unknown): Promise<any> => {
      const headers = { authorization: `Token ${token}`, 'content-type': 'application/json' };
      const answer = await fetch(service.url + route, { method, headers, body: body ? JSON.stringify(body) : null });
      const text = await answer.text();
      expect(answer.status, `${method} ${route}: ${text}`).toBeLessThan(300);
      return text ? JSON.parse(text) : undefined;
    };
    const organization = (await ask('GET', '/organization')).results[0].id;
    const project = await ask('POST', `/organization/${organization}/project`, { name: 'p' });
    let made = 0;
    const makeOne = async (): Promise<string> => {
      const environment = await ask('POST', `/project/${project.id}/environment`, {
        name: `e ${made++}`,
        mode: 'DEVELOPMENT',
      });
      await ask('POST', `/environment/${environment.id}/application`, {
        name: 'hello',
        git_repository: { url: inject('example'), branch: 'HEAD' },
        dockerfile_path: 'Dockerfile',
        ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
      });
      return environment.id;
    };
    const deployOne = (environment: string) => ask('POST', `/environment/${environment}/deploy?wait=60`);
    // One after another: changes of one organization wait for each other, on a slow machine longer than the API lets them.
    const environments: string[] = [];
    while (made < 20) environments.push(await makeOne());
    const ended = await Promise.all(environments.map(deployOne));
    expect(ended.map(({ state }) => state)).toEqual(Array(20).fill('DEPLOYED'));
    expect((await runProgram(['doctor'], settings)).stdout).toMatch(/✓ PostgreSQL .* through a pooler/);

    // Its clients lose their connections, and get new ones.
    await here(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'quarterdeck' and pid <> pg_backend_pid()`);
    await expect
      .poll(
        () =>
          makeOne()
            .then(deployOne)
            .catch(() => undefined),
        { timeout: 60_000 },
      )
      .toBeDefined();
  }, 180_000);
});
