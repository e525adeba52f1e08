import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request as send } from 'undici';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { sql } from '#platform/database/index.ts';
import { KINDS } from '#services/mount.ts';
import { createReportLoop } from '#services/previews/report.ts';
import type { usePreviews } from '#services/previews/previews.fixture.ts';
import { ok, type Actor, type TestApp } from '#test/harness/app.ts';

/** Status that the provider was sent. */
export interface SentStatus {
  url: string;
  commit: string;
  state: string;
  /** Name by which the provider tells statuses of a commit apart. */
  label: string;
  target: string | undefined;
}

/** Provides a pretended git provider, repositories at it, and the loop that tells it of previews. */
export function useProvider(app: TestApp, fixture: ReturnType<typeof usePreviews>) {
  const provider = {
    origin: '',
    /** Comments on pull requests, by id; empty for deleted ones. */
    comments: new Map<string, string>(),
    statuses: [] as SentStatus[],
    /** Status code for requests whose URL contains the text. */
    refuses: new Map<string, number>(),
    /** Requests whose URL contains the text are answered once it is resolved. */
    gate: { of: '', opened: Promise.resolve() },
    /** Called with each status before it is answered. */
    onStatus: (_status: SentStatus): unknown => undefined,
    /** Address of the git server that has the repositories, without their owners; empty for none. */
    git: '',
  };
  let made = 0;
  let server: Server;
  const answerOf = async (method: string, url: string, body: any): Promise<[number, unknown]> => {
    if (provider.gate.of !== '' && url.includes(provider.gate.of)) await provider.gate.opened;
    for (const [text, status] of provider.refuses) if (url.includes(text)) return [status, {}];
    const isGitLab = url.includes('/projects/');
    const sent = /\/(?:statuses|commit)\/([0-9a-f]+)/.exec(url);
    if (sent) {
      const { state, context, name, target_url, url: target } = body;
      const status = { url, commit: sent[1]!, state, label: context ?? name, target: target_url ?? target };
      // As GitLab does: a status that is pending cannot become so again.
      const last = provider.statuses.findLast(
        ({ commit, label }) => commit === status.commit && label === status.label,
      );
      if (isGitLab && state === 'pending' && last?.state === 'pending')
        return [400, { message: 'Cannot transition status' }];
      provider.statuses.push(status);
      await provider.onStatus(status);
      return [201, {}];
    }
    const isBitbucket = url.startsWith('/2.0/');
    const list = [...provider.comments].map(([id, text]) => ({ id: Number(id), body: text, content: { raw: text } }));
    const left = list.filter(({ body: text }) => text !== '');
    // Bitbucket keeps deleted comments in its list.
    if (method === 'GET')
      return [200, isBitbucket ? { values: list.map((one) => ({ ...one, deleted: one.body === '' })) } : left];
    const id = method === 'POST' ? String(++made) : /(\d+)$/.exec(url)![1]!;
    if (method !== 'POST' && !provider.comments.get(id)) return [404, {}];
    provider.comments.set(id, body.body ?? body.content.raw);
    return [200, { id: Number(id) }];
  };
  /** Passes a call of git on. A call that the server does not answer whole gets no answer, as where it is asked itself. */
  async function passToGit({ method, url, headers: given }: IncomingMessage, body: Buffer, response: ServerResponse) {
    const names = ['content-type', 'content-encoding', 'git-protocol'] as const;
    const headers = Object.fromEntries(names.flatMap((name) => (given[name] ? [[name, String(given[name])]] : [])));
    const address = `${provider.git}${url!.replace(/^\/\w+\/(\w+)\.git\//, '/$1/')}`;
    try {
      const answer = await send(address, {
        method: method as 'GET' | 'POST',
        headers,
        body: body.length > 0 ? body : null,
      });
      const content = Buffer.from(await answer.body.arrayBuffer());
      const contentType = String(answer.headers['content-type'] ?? '');
      response.writeHead(answer.statusCode, { 'content-type': contentType }).end(content);
    } catch {
      response.destroy();
    }
  }
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      if (provider.git !== '' && request.url!.includes('.git/')) return passToGit(request, body, response);
      const [status, value] = await answerOf(
        request.method!,
        request.url!,
        body.length > 0 ? JSON.parse(body.toString()) : undefined,
      );
      response.writeHead(status).end(JSON.stringify(value));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    provider.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const loops = new Set<ReturnType<typeof createReportLoop>>();
  afterEach(async () => {
    await Promise.all([...loops].map((loop) => loop.stop()));
    loops.clear();
    await app.db.deleteFrom('pull_request_report').execute();
    made = 0;
    provider.comments.clear();
    provider.refuses.clear();
    provider.statuses = [];
    provider.gate = { of: '', opened: Promise.resolve() };
    provider.onStatus = () => undefined;
  });

  /** Makes an environment that makes previews, with a service of a repository at the provider. */
  async function place({
    type = 'GITHUB',
    path = '',
    repository = 'acme/shop',
    admin: known,
    more = {},
  }: { type?: string; path?: string; repository?: string; admin?: Actor; more?: object } = {}) {
    const admin = known ?? (await app.organization());
    const { origin } = provider;
    const body = { name: newId(), type, token: 'good', git_api_url: `${origin}${path}` };
    const { id: git_token_id } = ok(await admin.post(`/organization/${admin.organizationId}/gitToken`, body), 201);
    const git_repository = { url: `${origin}/${repository}.git`, branch: 'main', git_token_id };
    const ports = [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }];
    const rule = { auto_preview: true, on_demand_preview: true };
    const source = await fixture.sourceOf(admin, { git_repository, ports, ...more }, rule);
    return { admin, ...source, key: `${new URL(origin).host}/${repository}` };
  }

  const reportsOf = ({ organizationId }: Actor) =>
    app.db.selectFrom('pull_request_report').selectAll().where('organization_id', '=', organizationId).execute();

  const reporter = () => {
    const loop = createReportLoop({ platform: app.platform, kinds: KINDS }, newId());
    loops.add(loop);
    return loop;
  };

  /** Has the provider told until it has nothing new to be told, and returns the reports. */
  async function told(admin: Actor) {
    await sql`update pull_request_report set due_at = now() where status = 'WAITING'`.execute(app.db);
    const loop = reporter();
    void loop.look();
    const isTold = async () =>
      (await reportsOf(admin)).every(({ status, due_at }) => status === 'ENDED' || due_at > new Date());
    await expect.poll(isTold, { timeout: 20_000 }).toBe(true);
    await loop.stop();
    return reportsOf(admin);
  }

  return { provider, place, told, reporter, reportsOf };
}
