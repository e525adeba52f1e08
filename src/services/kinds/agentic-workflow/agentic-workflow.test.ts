import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

async function makeEnvironment(admin: Actor): Promise<string> {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  return ok(await admin.post(`/project/${project.id}/environment`, { name: newId() }), 201).id;
}

const makeServer = async (admin: Actor) =>
  ok(
    await admin.post(`/organization/${admin.organizationId}/mcpServer`, {
      name: newId(),
      url: 'https://mcp.example.com/mcp',
    }),
    201,
  ).id as string;

const fieldsOf = (answer: { body: any }): string[] => answer.body.errors.map((error: { field: string }) => error.field);

describe('an agentic workflow', () => {
  test('shows its address from DEPLOY on and headers of its outputs from WRITE on, and neither in an event', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const headers = [{ name: 'Authorization', value: 'Bearer canary-header' }];
    const body = { name: 'triage', outputs: [{ name: 'chat', url: 'https://chat.example.com', headers }] };
    const made = ok(await admin.post(`/environment/${environment}/agenticWorkflow`, body), 201);
    ok(await admin.put(`/agenticWorkflow/${made.id}`, { ...body, agent_prompt: 'Look into it.' }), 200);
    const shown = { READ: ['', ''], DEPLOY: [made.slug, ''], WRITE: [made.slug, 'Bearer canary-header'] };
    for (const [scope, [slug, header]] of Object.entries(shown)) {
      const actor = await admin.withScope(scope as 'READ');
      const lists = [`/environment/${environment}/agenticWorkflow`, `/environment/${environment}/services`];
      for (const { results } of await Promise.all(lists.map(async (url) => ok(await actor.get(url), 200))))
        expect(results).toMatchObject([{ id: made.id, slug, outputs: [{ headers: [{ value: header }] }] }]);
      const one = ok(await actor.get(`/agenticWorkflow/${made.id}`), 200);
      expect([one.slug, one.webhook.url.endsWith(slug!)]).toEqual([slug, true]);
      const events = JSON.stringify(ok(await actor.get(`/organization/${admin.organizationId}/events`), 200));
      expect(events).toContain(made.id);
      for (const credential of [made.slug, 'canary-header']) expect(events).not.toContain(credential);
    }
  });

  test('has the defaults of the reference, and a webhook that nobody guesses', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const url = `/environment/${environment}/agenticWorkflow`;
    const [one, two] = [
      ok(await admin.post(url, { name: 'On-Call: Triage' }), 201),
      ok(await admin.post(url, { name: 'on call triage' }), 201),
    ];
    expect(one).toMatchObject({
      service_type: 'AGENTIC_WORKFLOW',
      slug: expect.stringMatching(/^on-call-triage-[0-9a-f]{32}$/),
      enabled: true,
      model: { type: 'CLAUDE', settings: '' },
      outputs: [],
      governance: { host_allowlist: [] },
      resources: { cpu_milli: 1000, ram_mib: 1024, gpu: 0, storage_gib: 0 },
      webhook: { url: expect.stringContaining(one.slug) },
    });
    expect(two.slug).not.toBe(one.slug);
    expect(ok(await admin.get(`/environment/${environment}/statuses`), 200).agentic_workflows).toHaveLength(2);
  });

  test('keeps what an edit leaves out, and never answers its secrets', async () => {
    const admin = await app.organization();
    const environment = await makeEnvironment(admin);
    const api_key = 'sk-never-shown-again';
    const webhook_secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const made = await admin.post(`/environment/${environment}/agenticWorkflow`, {
      name: 'triage',
      webhook_secret,
      webhook_ip_allowlist: ['192.0.2.0/24', '2001:db8::1'],
      mcp_server_ids: [await makeServer(admin)],
      mcp: '{"mcpServers":{}}',
      agent_prompt: 'Look.',
      model: { type: 'BEDROCK', api_key, settings: '{"model":"small"}' },
      outputs: [{ name: 'chat', url: 'https://chat.example.com/in', headers: [{ name: 'x-room', value: 'ops' }] }],
      project_repositories: [{ url: 'https://github.com/acme/shop.git', branch: 'main' }],
    });
    const before = ok(made, 201);
    const url = `/agenticWorkflow/${before.id}`;
    const edited = ok(await admin.put(url, { name: 'other', model: { type: 'CLAUDE' } }), 200);
    expect(edited).toEqual({ ...before, updated_at: edited.updated_at, name: 'other', model: { ...before.model, type: 'CLAUDE' } }); // prettier-ignore
    const { spec } = await app.db.selectFrom('service').select('spec').where('id', '=', before.id).executeTakeFirstOrThrow(); // prettier-ignore
    expect((spec as any).model.api_key).toEqual(expect.any(String));
    const { change } = await app.db.selectFrom('audit_event').select('change').where('target_id', '=', before.id).executeTakeFirstOrThrow(); // prettier-ignore
    for (const secret of [api_key, webhook_secret])
      expect(JSON.stringify([before, edited, spec, change])).not.toContain(secret);
  });

  test('refuses what is wrong, naming the field, and what it cannot keep', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const url = `/environment/${await makeEnvironment(admin)}/agenticWorkflow`;
    const cases: [object, string][] = [
      [{ mcp: 'no' }, 'mcp'],
      [{ model: { type: 'CLAUDE', settings: '[]' } }, 'model.settings'],
      [{ webhook_ip_allowlist: ['192.0.2.0/33'] }, 'webhook_ip_allowlist[0]'],
      [{ webhook_secret: 'whsec_short' }, 'webhook_secret'],
      [{ mcp_server_ids: [await makeServer(stranger)] }, 'mcp_server_ids[0]'],
      [{ outputs: [{ name: 'a', url: 'http://127.0.0.1/' }] }, 'outputs[0].url'],
      [{ outputs: [{ name: 'a', headers: [{ name: 'a b', value: '' }] }] }, 'outputs[0].headers[0].name'],
      [{ project_repositories: [{ url: 'nowhere', branch: 'main' }] }, 'project_repositories[0].url'],
      [{ governance: { host_allowlist: ['example.com', 'https://example.com/'] } }, 'governance.host_allowlist[1]'],
      [{ governance: { host_allowlist: ['10.0.0.1:443'] } }, 'governance.host_allowlist[0]'],
      [{ project_repositories: [{ url: 'https://github.com/acme/shop.git', branch: 'main', git_token_id: newId() }] }, 'project_repositories[0].git_token_id'], // prettier-ignore
      [{ docker_fragment: 'RUN true\nFROM scratch' }, 'docker_fragment'],
    ];
    for (const [body, field] of cases) {
      const answer = await admin.post(url, { name: 'triage', ...body });
      expect([answer.status, fieldsOf(answer)]).toEqual([400, [field]]);
    }
    ok(await stranger.post(url, { name: 'triage' }), 404);
    ok(await (await admin.withScope('DEPLOY')).post(url, { name: 'triage' }), 403);
  });

  test('has nothing to cancel before its first run, and is gone at once', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const url = `/environment/${await makeEnvironment(admin)}/agenticWorkflow`;
    const { id } = ok(await admin.post(url, { name: 'triage' }), 201);
    ok(await admin.post(`/agenticWorkflow/${id}/cancelDeployment`), 409);
    ok(await stranger.post(`/agenticWorkflow/${id}/cancelDeployment`), 404);
    ok(await (await admin.withScope('READ')).post(`/agenticWorkflow/${id}/cancelDeployment`), 403);
    expect(ok(await admin.get(`/agenticWorkflow/${id}/deploymentHistoryV2`), 200).results).toEqual([]);
    expect(ok(await admin.delete(`/agenticWorkflow/${id}`), 202)).toMatchObject({ id, state: 'DELETED' });
    ok(await admin.get(`/agenticWorkflow/${id}`), 404);
  });
});
