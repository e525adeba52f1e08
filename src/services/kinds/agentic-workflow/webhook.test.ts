import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Webhook as Signer } from 'standardwebhooks';
import { createServer } from '#kernel/node-http.ts';
import { newId } from '#kernel/ids.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import { AGENTIC_TASKS } from '#services/kinds/agentic-workflow/outputs.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { markAsFork } from '#test/harness/fork.ts';
import { useEngine } from '#test/harness/engine.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { ASKS_LOOPBACK, useImages } from '#test/harness/images.ts';

const images = await useImages();
const app = useApp({
  ...ASKS_LOOPBACK,
  QUARTERDECK_AGENT_IMAGE: `${images.host}/acme/agent:1.0`,
  QUARTERDECK_AGENT_MODEL_URL: 'http://127.0.0.1:9/model',
});
const engine = useEngine(app, {
  outcomes: {
    '*': {
      lines: ['working with sk-never-shown-again'],
      output: '{"type":"result","result":"done, sk-never-shown-again"}',
    },
  },
});

const received: { headers: Record<string, unknown>; body: any }[] = [];
const receiver = createServer((request, response) => {
  let text = '';
  request.on('data', (part) => (text += part));
  request.on('end', () => {
    received.push({ headers: request.headers, body: JSON.parse(text) });
    response.end();
  });
});
beforeAll(() => new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => receiver.close(resolve)));

async function makeWorkflow(admin: Actor, more: object = {}) {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
  const body = { name: 'triage', agent_prompt: 'Look into it.', ...more };
  return ok(await admin.post(`/environment/${environment.id}/agenticWorkflow`, body), 201);
}

const call = (workflow: { slug: string }, body: object = {}, headers: Record<string, string> = {}) =>
  app.anonymous('POST', `/agenticWorkflowWebhook/${workflow.slug}`, body, headers);

describe('the webhook of an agentic workflow', () => {
  test('runs the agent in an environment that expires, and posts its answer without secrets', async () => {
    const admin = await app.organization();
    const { port } = receiver.address() as AddressInfo;
    const workflow = await makeWorkflow(admin, {
      model: { type: 'CLAUDE', api_key: 'sk-never-shown-again' },
      governance: { host_allowlist: ['api.example.com'] },
      resources: { cpu_milli: 500, ram_mib: 256, gpu: 1, storage_gib: 2 },
      outputs: [{ name: 'chat', url: `http://127.0.0.1:${port}/in`, headers: [{ name: 'X-Room', value: 'ops' }] }],
    });
    const run = ok(await call(workflow, { alert: 'disk is full' }, { 'webhook-id': 'call-1' }), 202);
    expect(ok(await call(workflow, { alert: 'disk is full' }, { 'webhook-id': 'call-1' }), 202)).toEqual(run);
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect.poll(async () => (await history()).body.results[0]?.status).toBe('DEPLOYED');
    expect((await history()).body.results).toHaveLength(1);

    const environment = ok(await admin.get(`/environment/${run.environment_id}`), 200);
    expect(Date.parse(environment.expires_at) - Date.parse(environment.created_at)).toBe(24 * 3_600_000);
    const tasks = engine.runtime.tasksOf(run.agentic_workflow_id);
    const [task] = tasks;
    expect(tasks).toHaveLength(1);
    expect(task!.environment).toMatchObject({
      ANTHROPIC_API_KEY: 'sk-never-shown-again',
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/model',
    });
    const fileOf = (name: string) => task!.files.find(({ path }) => path.endsWith(`/${name}`))!.content;
    expect(fileOf('prompt.md')).toContain('disk is full');
    expect(task).toMatchObject({
      egress: {
        rules: [
          { host: 'api.example.com', port: null, isPrivate: false },
          { host: '127.0.0.1', port: 9, isPrivate: true },
        ],
        allowedPrivateAddresses: ['127.0.0.0/8'],
      },
      resources: { cpuMilli: 500, memoryMib: 256 },
      gpus: 1,
      storage: [{ sizeGib: 2, mountPath: '/quarterdeck/answer/work' }],
    });
    // Nothing of it stays where it ran.
    await expect.poll(() => engine.runtime.leftovers(task!.identity)).toEqual([]);
    const copy = ok(await admin.get(`/agenticWorkflow/${run.agentic_workflow_id}`), 200);
    expect(JSON.stringify([copy, run])).not.toContain('disk is full');
    ok(await call(copy), 409);

    await AGENTIC_TASKS[0]!.run(app.platform, new AbortController().signal);
    expect(received).toMatchObject([
      {
        headers: { 'x-room': 'ops' },
        body: { workflow: 'triage', output: 'chat', success: true, environment_id: run.environment_id },
      },
    ]);
    expect(received[0]!.body.answer).toMatch(/^done, /);
    expect(JSON.stringify(received)).not.toContain('sk-never-shown-again');
    const log = ok(await admin.get(`/environment/${run.environment_id}/logs`), 200);
    expect(JSON.stringify(log)).toContain('working with');
    expect(JSON.stringify(log)).not.toContain('sk-never-shown-again');
  });

  test.each(['null', '["done"]', 'plain words', '', '{"result":5}'])(
    'posts an answer that is no object with a text as it is: %s',
    async (output) => {
      engine.runtime.onTask('*', () => ({ output }));
      onTestFinished(() => engine.runtime.onTask('*', null));
      received.length = 0;
      const admin = await app.organization();
      const { port } = receiver.address() as AddressInfo;
      const outputs = [{ name: 'chat', url: `http://127.0.0.1:${port}/in` }];
      const workflow = await makeWorkflow(admin, { outputs });
      ok(await call(workflow), 202);
      await expect
        .poll(async () => {
          await AGENTIC_TASKS[0]!.run(app.platform, new AbortController().signal);
          return received.map(({ body }) => [body.success, body.answer]);
        })
        .toEqual([[true, output]]);
    },
  );

  test('hands over private repositories as files: their token is nowhere that the agent is', async () => {
    const repositories = makeRepositoryRoot();
    const repository = repositories.make('private');
    repository.commit({ 'read.me': 'in confidence' });
    const password = 'glpat-never-shown-again';
    await using git = await startGitServer({
      root: repositories.folder,
      credentials: { username: 'oauth2', password },
    });
    const admin = await app.organization();
    const token = ok(await admin.post(`/organization/${admin.organizationId}/gitToken`, { name: newId(), type: 'GITLAB', token: password, git_api_url: git.url }), 201); // prettier-ignore
    const url = `${git.url}/private`;
    const workflow = await makeWorkflow(admin, {
      project_repositories: [{ url, branch: 'main', git_token_id: token.id }],
    });
    ok(await admin.delete(`/organization/${admin.organizationId}/gitToken/${token.id}`), 409);
    const found: string[] = [];
    engine.runtime.onTask('*', ({ folders }) => {
      const [{ directory, path: at }] = folders as [{ directory: string; path: string }];
      found.push(at, ...(readdirSync(directory, { recursive: true }) as string[]), readFileSync(path.join(directory, '1-private/read.me'), 'utf8')); // prettier-ignore
      return { output: '{}' };
    });
    onTestFinished(() => engine.runtime.onTask('*', null));
    const run = ok(await call(workflow), 202);
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect.poll(async () => (await history()).body.results[0]?.status).toBe('DEPLOYED');
    expect(found).toEqual(['/quarterdeck/answer/work', '1-private', '1-private/read.me', 'in confidence']);
    const tasks = engine.runtime.tasksOf(run.agentic_workflow_id);
    const log = ok(await admin.get(`/environment/${run.environment_id}/logs`), 200);
    expect(JSON.stringify(log)).toContain(url);
    expect(JSON.stringify([tasks, log, await admin.get(`/agenticWorkflow/${workflow.id}`)])).not.toContain(password);
    // After the end is told.
    await expect.poll(() => existsSync(tasks[0]!.folders![0]!.directory)).toBe(false);
    repositories.remove();
  });

  test('a repository that cannot be read fails the run, and no agent is begun', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin, { project_repositories: [{ url: 'http://127.0.0.1:9/gone.git', branch: 'main' }] }); // prettier-ignore
    const run = ok(await call(workflow), 202);
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect.poll(async () => (await history()).body.results[0]?.status).toMatch(/ERROR/);
    expect(engine.runtime.tasksOf(run.agentic_workflow_id)).toEqual([]);
  });

  test("a fragment is built upon the agent's image, and the run uses that", async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin, { docker_fragment: 'RUN echo made > /made' });
    const run = ok(await call(workflow), 202);
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect.poll(async () => (await history()).body.results[0]?.status).toBe('DEPLOYED');
    const [task] = engine.runtime.tasksOf(run.agentic_workflow_id);
    expect(task!.image).not.toContain('acme/agent');
    expect(JSON.stringify(ok(await admin.get(`/environment/${run.environment_id}/logs`), 200))).toContain(`Built ${task!.image}`); // prettier-ignore
  });

  test('is refused before anything is made where the cluster cannot keep an agent in', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin);
    await app.db.updateTable('cluster').set({ runtime: 'kubernetes' }).where('organization_id', '=', admin.organizationId).execute(); // prettier-ignore
    const { error_message, message, ...rest } = ok(await call(workflow), 400);
    expect(JSON.stringify([error_message, message, rest])).toContain('reaches listed hosts only');
    expect(await app.db.selectFrom('environment').select('id').where('organization_id', '=', admin.organizationId).execute()).toHaveLength(1); // prettier-ignore
  });

  test('on a host cluster the run is built of the machine, whose program it takes, and no image is asked for', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin);
    await app.db.updateTable('cluster').set({ runtime: 'host' }).where('organization_id', '=', admin.organizationId).execute(); // prettier-ignore
    const run = ok(await call(workflow), 202);
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect.poll(async () => (await history()).body.results[0]?.status).toBe('DEPLOYED');
    const [task] = engine.runtime.tasksOf(run.agentic_workflow_id);
    expect(task!.image).not.toContain('acme/agent');
    expect(task!.egress!.rules.map(({ host }) => host)).toEqual(['127.0.0.1']);
  });

  test('makes nothing in the preview of a fork: its run would have the secrets, and none of the limits', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin);
    await markAsFork(app.db, workflow.environment.id);
    expect(ok(await call(workflow), 409).message).toContain('does not run in the preview of a fork');
    const rows = await app.db.selectFrom('environment').select('id').where('organization_id', '=', admin.organizationId).execute(); // prettier-ignore
    expect(rows).toEqual([{ id: workflow.environment.id }]);
  });

  test('takes signed calls only where there is a secret, each once and in its time', async () => {
    const admin = await app.organization();
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const workflow = await makeWorkflow(admin, { webhook_secret: secret });
    const body = { alert: 'x' };
    const signed = (id: string, at: Date, key = secret) => ({
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Signer(key).sign(id, at, JSON.stringify(body)),
    });
    const now = new Date();
    const wrong = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
    ok(await call(workflow, body), 401);
    ok(await call(workflow, body, signed('a', now, wrong)), 401);
    ok(await call(workflow, body, signed('a', new Date(now.getTime() - 600_000))), 401);
    ok(await call(workflow, { alert: 'y' }, signed('a', now)), 401);
    const answers = await Promise.all([1, 2, 3].map(() => call(workflow, body, signed('a', now))));
    expect(new Set(answers.map((answer) => ok(answer, 202).environment_id)).size).toBe(1);
  });

  test('is closed to other addresses, to the switched off, and at an unknown address', async () => {
    const admin = await app.organization();
    const workflow = await makeWorkflow(admin, { webhook_ip_allowlist: ['192.0.2.0/24'] });
    const forged = { 'x-forwarded-for': '192.0.2.1' };
    ok(await call(workflow, {}, forged), 403);
    ok(await admin.put(`/agenticWorkflow/${workflow.id}`, { name: 'triage', webhook_ip_allowlist: ['127.0.0.0/8', '::1'], enabled: false }), 200); // prettier-ignore
    ok(await call(workflow), 409);
    ok(await call({ slug: `${workflow.slug}0` }), 404);
    expect(await app.db.selectFrom('agentic_run').select('id').where('workflow_id', '=', workflow.id).execute()).toEqual([]); // prettier-ignore
  });
});
