import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { launchProgram, runProgram, startService, useInstallation } from '#cli/testing.ts';

const { settings, home, here } = useInstallation('node');

test(
  'a drained node keeps deployments waiting and says so, and its undrain begins them',
  { timeout: 180_000 },
  async () => {
    const { url } = await startService(settings);
    const run = async (...args: string[]) => {
      const { status, stdout, stderr } = await runProgram(['node', ...args], settings);
      expect(status, stderr).toBe(0);
      return stdout;
    };
    const nodes = async () => JSON.parse(await run('list', '--json'));
    // The first cluster is still being made.
    await expect.poll(nodes).toMatchObject([{ running: 0, waiting: 0 }]);
    const [node] = await nodes();
    expect(node).toEqual({
      id: readFileSync(path.join(home, 'node-id'), 'utf8').trim(),
      name: expect.any(String),
      drained_at: null,
      lost: false,
      seen_at: expect.any(String),
      clusters: 1,
      running: 0,
      waiting: 0,
    });
    const listed = await run('list');
    expect(listed).toMatch(/^NODE +ID +STATE +SEEN +CLUSTERS +RUNNING +WAITING\n/);
    expect(listed).toMatch(new RegExp(`\\n${node.name} +${node.id} +ready +\\d{4}-\\S+Z +1 +0 +0\\n$`));

    const drained = await run('drain', node.name);
    expect(drained).toBe(`Drained ${node.name}: it begins nothing new. Nothing runs there.\n`);
    expect(await run('drain', node.name, '--wait', '60')).toMatch(/ is drained since \S+Z\. Nothing runs there\.\n$/);
    expect(await run('drain', node.id)).toMatch(/ is drained since \S+Z\. Nothing runs there\.\n$/);

    const token = readFileSync(path.join(home, 'admin-token'), 'utf8').trim();
    const ask = async (method: string, route: string, body?: object) => {
      const headers = { authorization: `Token ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) };
      const answer = await fetch(url + route, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
      expect(answer.ok, `${method} ${route}: ${await answer.clone().text()}`).toBe(true);
      return (await answer.json()) as any;
    };
    const organization = await ask('GET', '/organization');
    const project = await ask('POST', `/organization/${organization.id}/project`, { name: 'p' });
    const environment = await ask('POST', `/project/${project.id}/environment`, { name: 'e' });
    const application = await ask('POST', `/environment/${environment.id}/application`, {
      name: 'a',
      git_repository: { url: 'https://git.example/a.git', branch: 'HEAD' },
      dockerfile_path: 'Dockerfile',
    });
    expect(await ask('POST', `/application/${application.id}/deploy`)).toMatchObject({ state: 'DEPLOYMENT_QUEUED' });
    const status = () => ask('GET', `/application/${application.id}/status`);
    expect(await status()).toMatchObject({ state: 'DEPLOYMENT_QUEUED', warnings: [{ code: 'NODE_DRAINED' }] });
    expect(await nodes()).toMatchObject([{ running: 0, waiting: 1 }]);

    expect(await run('undrain', node.name)).toBe(`Undrained ${node.name}: it takes work again.\n`);
    await expect.poll(status).toMatchObject({ state: 'DEPLOYED' });
    expect(await run('undrain', node.name)).toBe(`${node.name} is not drained.\n`);

    const wrong = await runProgram(['node', 'drain', node.name, '--wait', 'long'], settings);
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining('a number of seconds, such as 600')]);
    const refused = await runProgram(['node', 'drain', 'elsewhere'], settings);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      `quarterdeck: Node elsewhere: must be the name or id of a node. Nodes: ${node.name} (${node.id}).\n`,
    ]);
  },
);

test('a drain that waits returns when nothing runs there any longer, and fails after its time', async () => {
  await startService(settings);
  const [node] = JSON.parse((await runProgram(['node', 'list', '--json'], settings)).stdout);
  await here(
    `insert into cluster_work (id, organization_id, cluster_id, number, action, status, requested_by_name, origin, lease_until)
     select gen_random_uuid(), organization_id, id, 1000000, 'DRY_RUN', 'RUNNING', 'test', 'API', now() + interval '1 hour' from cluster`,
  );
  const late = await runProgram(['node', 'drain', node.name, '--wait', '1'], settings);
  expect([late.status, late.stdout]).toEqual([1, '']);
  expect(late.stderr).toContain(`${node.name} stays drained. 1 thing still runs there`);
  const waiting = launchProgram(['node', 'drain', node.name, '--wait', '60'], settings);
  await expect.poll(() => waiting.said.stderr).toBe(`Waiting for 1 thing on ${node.name}…\n`);
  await here(`update cluster_work set status = 'ENDED'`);
  expect([await waiting.ended, waiting.said.stdout]).toEqual([
    0,
    expect.stringMatching(/ is drained since \S+Z\. Nothing runs there\.\n$/),
  ]);
  await runProgram(['node', 'undrain', node.name], settings);
});
