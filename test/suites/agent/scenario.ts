import { createReadStream } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createServer } from '#kernel/node-http.ts';
import { AGENTIC_TASKS } from '#services/kinds/agentic-workflow/outputs.ts';
import { machineAddress, startMessagesApi, type AgentProgram, type MessagesApi } from '#test/harness/agent.ts';
import { ok, type TestApp } from '#test/harness/app.ts';
import type { RepositoryRoot } from '#test/harness/repository.ts';

const API_KEY = 'sk-of-the-test-never-shown';

/** Returns the agent's command, which reads its input and tests which hosts it can reach. */
const commandOf = (outside: string) => `
cat 1-private/read.me /added
git -C 1-private log --oneline | wc -l
proxy=\${HTTP_PROXY#http://}
exec 3<>"/dev/tcp/\${proxy%:*}/\${proxy#*:}"
printf 'GET http://${outside}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' >&3
head -n 1 <&3
timeout 3 bash -c 'exec 3<>/dev/tcp/${outside.replace(':', '/')}' 2>/dev/null && echo reached || echo no way around
{ nslookup example.com || getent hosts example.com; } >/dev/null 2>&1 && echo resolved || echo no names
env | grep -c ^HTTPS_PROXY=`;

/**
 * Surroundings of an agent: its model, and a server. The server has the agent's program for the build, takes its answer, and is a host that
 * is not listed.
 */
export interface Surroundings {
  model: MessagesApi;
  port: number;
  received: { agent?: any; outside: number };
  stop(): Promise<void>;
}

export async function startSurroundings(agent: AgentProgram): Promise<Surroundings> {
  const received: Surroundings['received'] = { outside: 0 };
  const receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (part) => (text += part));
    request.on('end', () => {
      if (request.url === '/claude') return void createReadStream(agent.program!).pipe(response);
      if (request.url === '/in') received.agent = JSON.parse(text);
      else received.outside += 1;
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '0.0.0.0', resolve));
  const { port } = receiver.address() as AddressInfo;
  const model = await startMessagesApi(commandOf(`${machineAddress()}:${port}`));
  const stop = async () => {
    await model.stop();
    receiver.close().closeAllConnections();
  };
  return { model, port, received, stop };
}

export interface AgentStage {
  app: TestApp;
  repositories: RepositoryRoot;
  surroundings: Surroundings;
  runtime: 'host' | 'docker';
  /** Returns the instructions that install the program from an address into the agent's image. */
  install(url: string): string;
  /** Returns the names of objects of a run besides its record: `ofRun` goes when the agent has ended, all of it with the environment. */
  leftOf(run: { environmentId: string; serviceId: string }): Promise<{ ofRun: string[]; all: string[] }>;
}

/** Tests a run with the agent's own program. */
export function testRun(stage: () => AgentStage): void {
  test('prompt, tool, answer: the model is asked through the proxy, nothing else is reached, and nothing stays', async () => {
    const { app, repositories, surroundings, runtime, install, leftOf } = stage();
    const { model, port, received } = surroundings;
    const repository = repositories.make('private');
    repository.commit({ 'read.me': 'in the repository\n' });
    const admin = await app.organization();
    await app.db.updateTable('cluster').set({ runtime }).where('organization_id', '=', admin.organizationId).execute();
    const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
    const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'e' }), 201);
    const workflow = ok(
      await admin.post(`/environment/${environment.id}/agenticWorkflow`, {
        name: 'triage',
        agent_prompt: 'Find out why the alert was raised.',
        model: { type: 'CLAUDE', api_key: API_KEY },
        docker_fragment: [
          'RUN echo added by the fragment > /added',
          install(`http://${machineAddress()}:${port}/claude`),
        ].join('\n'),
        resources: { cpu_milli: 2000, ram_mib: 1536, gpu: 0, storage_gib: 1 },
        governance: { host_allowlist: ['shop.example'] },
        project_repositories: [{ url: repository.url, branch: 'main' }],
        outputs: [{ name: 'chat', url: `http://127.0.0.1:${port}/in` }],
      }),
      201,
    );
    const run = ok(await app.anonymous('POST', `/agenticWorkflowWebhook/${workflow.slug}`, { alert: 'disk is full' }), 202); // prettier-ignore
    const lines = async () =>
      (ok(await admin.get(`/environment/${run.environment_id}/logs`), 200) as { message: { safe_message: string } }[])
        .map(({ message }) => message.safe_message)
        .join('\n');
    const history = () => admin.get(`/agenticWorkflow/${workflow.id}/deploymentHistoryV2`);
    await expect
      .poll(async () => (await history()).body.results[0]?.status, { timeout: 240_000, interval: 500 })
      .not.toMatch(/ING|QUEUED/)
      .catch(async (error: Error) => Promise.reject(new Error(`${error.message}\n${await lines()}`)));
    const log = await lines();
    expect((await history()).body.results[0].status, log).toBe('DEPLOYED');

    // The prompt, with the caller's text, is asked with the workflow's key.
    const [first] = model.asked;
    expect(first!.key).toBe(API_KEY);
    expect(first!.messages).toContain('Find out why the alert was raised.');
    expect(first!.messages).toContain('disk is full');

    // The answer has what the tool saw: repository, fragment, and no way out but the proxy.
    await AGENTIC_TASKS[0]!.run(app.platform, new AbortController().signal);
    expect(received.agent).toMatchObject({ success: true, output: 'chat', workflow: 'triage' });
    const { answer } = received.agent as { answer: string };
    for (const seen of [
      'It said: ',
      'in the repository',
      'added by the fragment',
      'HTTP/1.1 403',
      'no way around',
      'no names',
    ])
      expect(answer).toContain(seen);
    expect(received.outside).toBe(0);

    // The log is streamed, reports what was refused, and has no secret.
    for (const told of [
      'Can be reached: shop.example',
      'tool_use',
      'no way around',
      `Refused a connection: ${machineAddress()}:${port} is not among the hosts`,
    ])
      expect(log).toContain(told);
    expect(log + answer).not.toContain(API_KEY);

    // Sandbox, proxy, networks and files go with the run; image and disk go with its environment.
    const left = () => leftOf({ environmentId: run.environment_id, serviceId: run.agentic_workflow_id });
    await expect.poll(async () => (await left()).ofRun, { timeout: 30_000 }).toEqual([]);
    expect((await left()).all, 'its image and its disk').not.toEqual([]);
    ok(await admin.delete(`/environment/${run.environment_id}`), 204);
    await expect.poll(async () => (await admin.get(`/environment/${run.environment_id}`)).status, { timeout: 60_000 }).toBe(404); // prettier-ignore
    expect((await left()).all).toEqual([]);
  }, 400_000);
}
