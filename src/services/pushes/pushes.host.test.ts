import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { gitWebhookPath, gitWebhookSecretPlace } from '#services/capabilities/service/git-webhook/index.ts';
import { bodyOfPush, headersOf } from '#services/pushes/pushes.fixture.ts';
import { Program } from '#test/harness/program.ts';

const SERVER = `import { createServer } from 'node:http';
createServer((request, response) => response.end('TEXT')).listen(process.env.PORT);
`;
const files = (text: string) => ({ 'server.mjs': SERVER.replace('TEXT', text), Dockerfile: 'FROM node:24\nCOPY . .\nCMD ["node", "server.mjs"]\n' }); // prettier-ignore

let program: Program;
beforeAll(async () => {
  program = await Program.start({ QUARTERDECK_RUNTIME: 'host', QUARTERDECK_GIT_POLL_INTERVAL: '1' });
}, 120_000);
afterAll(() => program?.close());

test(
  'a push to a real repository is deployed, found by a poll or told by a webhook',
  { timeout: 240_000 },
  async () => {
    const repository = program.makeRepository();
    repository.commit(files('first'));
    const [organization] = (await program.ask('GET', '/organization')).results;
    const project = await program.ask('POST', `/organization/${organization.id}/project`, { name: 'shop' });
    const environment = await program.ask('POST', `/project/${project.id}/environment`, { name: 'dev' });
    const { id } = await program.ask('POST', `/environment/${environment.id}/application`, {
      name: 'web',
      auto_deploy: true,
      git_repository: { url: repository.url, branch: 'main' },
      ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
    });
    await program.ask('POST', `/application/${id}/deploy?wait=120`);
    const deployed = async () => (await program.ask('GET', `/application/${id}`)).git_repository.deployed_commit_id;

    const second = repository.commit(files('second'), { author: 'Grace Hopper' });
    await expect.poll(deployed, { timeout: 90_000, interval: 250 }).toBe(second);
    const [last] = (await program.ask('GET', `/application/${id}/deploymentHistoryV2`)).results;
    expect(JSON.stringify(last)).toContain('Grace Hopper');

    const { platform } = program.running.base;
    const { db, vault } = platform;
    const webhook = newId();
    const secret = await vault.seal(db, organization.id, gitWebhookSecretPlace(webhook), 'the-secret');
    const key = repository.url.toLowerCase();
    await db
      .insertInto('git_webhook')
      .values({ id: webhook, organization_id: organization.id, repository: key, secret })
      .execute();
    const third = repository.commit(files('third'));
    const body = bodyOfPush({ before: second, after: third });
    const response = await fetch(`${program.running.url}${gitWebhookPath(webhook)}`, {
      method: 'POST',
      headers: { ...headersOf('GITEA', body), 'content-type': 'application/json' },
      body,
    });
    expect(response.status).toBe(202);
    await expect.poll(deployed, { timeout: 90_000, interval: 250 }).toBe(third);
    const history = (await program.ask('GET', `/application/${id}/deploymentHistoryV2`)).results;
    // The poll found the third commit as well: it is deployed once.
    expect(history).toHaveLength(3);
  },
);
