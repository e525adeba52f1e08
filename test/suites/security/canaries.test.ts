import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { allRoutes } from '#app/routes.ts';
import { createWebhookDelivery } from '#delivery/webhooks/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { commandLines } from '#runtimes/host/testing.ts';
import type { Runtime } from '#runtimes/runtime.ts';
import { startGitServer, type GitServer } from '#runtimes/tools/git/testing.ts';
import { TestArgoCd } from '#test/harness/argo-cd.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeRepositoryRoot } from '#test/harness/repository.ts';
import { exampleOf } from '../answers.ts';
import { rowsWith } from '../fuzz/digest.ts';
import { makeWorld, type World } from '../world.ts';
import { createMarks, mark } from './marks.ts';
import { useHostEngine } from '#test/harness/real-engine.ts';

/**
 * Marked secrets of a service that runs through a whole life on real parts: git server, build, instance, webhook, database. All output
 * anywhere is kept and searched for the marks.
 */
const CANARIES = {
  secret: mark('secret'),
  overridden: mark('overridden'),
  file: `-----BEGIN KEY-----\n${mark('file')}\n${mark('file2')}\n-----END KEY-----\n`,
  gitToken: mark('git-token'),
  newGitToken: mark('new-git-token'),
  webhook: mark('webhook'),
  registry: mark('registry'),
  charts: mark('charts'),
  argoCd: mark('argo-cd'),
  awsKey: mark('aws-key'),
  gcpKey: mark('gcp-key'),
};
const { forms: FORMS, marksIn } = createMarks(CANARIES);

const root = makeRepositoryRoot();
const said: string[] = [];
const engine: { current?: { runtime: Runtime } } = {};
const app = useApp(
  { QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8', QUARTERDECK_LOG_LEVEL: 'trace' },
  { runtimeOf: async () => engine.current!.runtime },
  undefined,
  (line) => said.push(line),
);

engine.current = useHostEngine(app, (line) => said.push(line));
let gitServer: GitServer;
let receiver: Server;
let admin: Actor;
let world: World;
let application: { id: string };
const answers: string[] = [];
const calls: string[] = [];
const seenProcesses = new Set<string>();
const stops: (() => Promise<unknown>)[] = [];
let dataDir: string;

/** Returns an actor that keeps every answer. */
const kept = (actor: Actor): Actor => {
  const call: Actor['call'] = async (...request) => {
    const answer = await actor.call(...request);
    answers.push(`${request[0]} ${request[1]} ${JSON.stringify(answer)}`);
    return answer;
  };
  return {
    ...actor,
    call,
    get: (url, headers) => call('GET', url, undefined, headers),
    post: (url, body, headers) => call('POST', url, body, headers),
    put: (url, body, headers) => call('PUT', url, body, headers),
    delete: (url, headers) => call('DELETE', url, undefined, headers),
  };
};

const DOCKERFILE = `FROM scratch
ARG CANARY_SECRET
COPY . /app
WORKDIR /app
RUN echo "in the build: $CANARY_SECRET"
RUN echo "in base64: $(printf %s "x$CANARY_SECRET" | base64 -w 0)"
RUN echo "in digits: $(printf %s "$CANARY_SECRET" | od -An -v -tx1 | tr -d ' \\n')"
RUN sleep 0.3
CMD ["node", "main.js"]
`;
const MAIN = `const fs = require('node:fs');
const file = fs.readFileSync(process.env.KEY_FILE, 'utf8');
const secret = Buffer.from(process.env.CANARY_SECRET);
console.log('encoded', secret.toString('base64'), secret.toString('hex'), encodeURIComponent(\`/\${secret}\`), JSON.stringify({ secret: \`\${secret}\` }));
console.log('has', process.env.CANARY_SECRET.length, file.length);
require('node:http').createServer((_, response) => response.end('ok')).listen(process.env.PORT || 3000);
`;

beforeAll(async () => {
  dataDir = app.platform.settings.dataDir;
  const repository = root.make('app');
  repository.commit({ Dockerfile: DOCKERFILE, 'main.js': MAIN });
  gitServer = await startGitServer({
    root: root.folder,
    credentials: { username: 'oauth2', password: CANARIES.newGitToken },
  });
  receiver = createServer(async (request, response) => {
    // As a registry, the server refuses every password.
    if (/^\/v2\/|index\.yaml$/.test(request.url!))
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    let text = JSON.stringify(request.headers);
    for await (const chunk of request) text += String(chunk);
    calls.push(text);
    response.end('received');
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });
  const delivery = createWebhookDelivery({ platform: app.platform, nodeId: newId(), http, times: { poll: 50 } });
  delivery.start();
  stops.push(() => delivery.stop());
  const watch = setInterval(() => commandLines().forEach((line) => seenProcesses.add(line)), 25);
  stops.push(async () => clearInterval(watch));
});

afterAll(async () => {
  for (const stop of stops.splice(0)) await stop();
  receiver.close();
  await gitServer[Symbol.asyncDispose]();
  root.remove();
});

const make = async (url: string, body: object) => ok(await admin.post(url, body), 201);

beforeAll(async () => {
  world = await makeWorld(app);
  admin = kept(world.admin);
  const { organizationId, projectId, environmentId } = world;
  const organization = `/organization/${organizationId}`;
  const token = { name: 'canary', type: 'GITLAB', git_api_url: `${gitServer.url}/api/v4` };
  const account = { name: 'canary', type: 'AWS_STATIC', access_key_id: 'AKIA1', secret_access_key: CANARIES.awsKey };
  await make(`${organization}/aws/credentials`, account);
  await make(`${organization}/gcp/credentials`, { name: 'canary', gcp_credentials: CANARIES.gcpKey });
  const gitToken = await make(`${organization}/gitToken`, { ...token, token: CANARIES.gitToken });
  const port = (receiver.address() as AddressInfo).port;
  const events = ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL', 'DEPLOYMENT_FAILURE'];
  const secret = Buffer.from(CANARIES.webhook).toString('base64');
  await make(`${organization}/webhook`, {
    target_url: `http://127.0.0.1:${port}/`,
    events,
    target_secret: `whsec_${secret}`,
  });
  await askRegistries(organization, `http://127.0.0.1:${port}`);
  const argo = await new TestArgoCd().start();
  stops.push(() => argo.stop());
  argo.accounts.set(CANARIES.argoCd, { username: 'canary', projects: null });
  const argoCd = { argocd_url: argo.url, argocd_token: CANARIES.argoCd };
  for (const path of ['', '/check'])
    expect(ok(await admin.post(`/cluster/${world.clusterId}/argoCdConfig${path}`, argoCd), 200).status).toBe(
      'connected',
    );
  application = await make(`/environment/${environmentId}/application`, {
    name: 'canary',
    git_repository: { url: `${gitServer.url}/app`, branch: 'main', git_token_id: gitToken.id },
    dockerfile_path: 'Dockerfile',
    ports: [{ internal_port: 3000, publicly_accessible: true, protocol: 'HTTP' }],
  });
  const url = `/application/${application.id}`;
  const parent = await make(`/project/${projectId}/secret`, { key: 'CANARY_SECRET', value: CANARIES.overridden });
  await make(`${url}/secret/${parent.id}/override`, { value: CANARIES.secret });
  await make(`${url}/secret`, { key: 'KEY_FILE', value: CANARIES.file, mount_path: '/app/key.pem' });
  await make(`${url}/environmentVariable`, { key: 'URL', value: 'https://x:{{CANARY_SECRET}}@host/' });
  // A wrong token first: its refusal is reported everywhere, the token nowhere.
  await admin.post(`${url}/deploy?wait=30`, {});
  ok(await admin.put(`${organization}/gitToken/${gitToken.id}`, { ...token, token: CANARIES.newGitToken }), 200);
}, 60_000);

/** Sends passwords of registries to a server that refuses them. */
async function askRegistries(organization: string, url: string): Promise<void> {
  const config = (password: string) => ({ config: { username: 'ada', password } });
  const registry = { name: 'canary', kind: 'GENERIC_CR', url, ...config(CANARIES.registry) };
  const charts = { name: 'canary', kind: 'HTTPS', url, skip_tls_verification: false, ...config(CANARIES.charts) };
  const [one, other] = [
    await make(`${organization}/containerRegistry`, registry),
    await make(`${organization}/helmRepository`, charts),
  ];
  ok(await admin.get(`${organization}/containerRegistry/${one.id}/images?imageName=app`), 400);
  ok(await admin.get(`${organization}/helmRepository/${other.id}/charts`), 400);
}

describe('a service with secrets', () => {
  test('is built and runs with them', async () => {
    const url = `/application/${application.id}`;
    const status = ok(await admin.post(`${url}/deploy?wait=60`, {}), 200);
    const logs = ok(await admin.get(`/environment/${world.environmentId}/logs`), 200);
    expect(status.state, JSON.stringify(logs).slice(-3000)).toBe('DEPLOYED');
    await expect
      .poll(async () => JSON.stringify(ok(await admin.get(`${url}/log`), 200)))
      .toContain(`has ${CANARIES.secret.length} ${CANARIES.file.length}`);
    // The build printed it: it is in the log, masked.
    expect(JSON.stringify(logs)).toContain('in the build: ***');
    await expect.poll(() => calls.length).toBeGreaterThan(1);
  }, 90_000);

  test('has them in no answer of any operation', async () => {
    for (const route of allRoutes().filter((one) => one.method === 'GET')) {
      const example = exampleOf(world, route);
      await admin.get((example.path ?? world.pathOf(route)) + (example.query ?? ''));
      if (route.path.includes('{applicationId}'))
        await admin.get(world.pathOf(route).replace(world.applicationId, application.id) + (example.query ?? ''));
    }
    for (const answer of answers) expect(marksIn(answer), answer.slice(0, 300)).toEqual([]);
  }, 60_000);

  test('has them in no line of the log, at any level', () => {
    expect(said.length).toBeGreaterThan(20);
    for (const line of said) expect(marksIn(line), line.slice(0, 500)).toEqual([]);
  });

  test('has them in no call of a webhook', () => {
    for (const call of calls) expect(marksIn(call), call).toEqual([]);
  });

  test('has them on no command line, of git, of the build or of the instance', () => {
    const lines = [...seenProcesses];
    expect(
      lines.some((line) => line.includes(gitServer.url)),
      'git was seen at work',
    ).toBe(true);
    expect(
      lines.some((line) => line.includes('sleep')),
      'the build was seen at work',
    ).toBe(true);
    for (const line of lines) expect(marksIn(line), line.slice(0, 300)).toEqual([]);
  });

  test('has them nowhere in the database in clear: not in rows, plans, snapshots, events or logs', async () => {
    expect(await rowsWith(app, 'https://x:{{CANARY_SECRET}}@host/'), 'what is no secret is found').not.toEqual([]);
    for (const { name, form } of FORMS) expect(await rowsWith(app, form), name).toEqual([]);
  });

  test('has them in no image, and otherwise only in files of its instances that are closed to others', () => {
    expect(filesWith(path.join(dataDir, 'images'))).toEqual([]);
    expect(filesWith(path.join(dataDir, 'checkouts'))).toEqual([]);
    const own = path.join(dataDir, 'host', 'services');
    const found = filesWith(dataDir);
    expect(found.filter(({ file }) => !file.startsWith(own))).toEqual([]);
    expect(found.length, 'the instance has them').toBeGreaterThan(0);
    for (const { file } of found) expect(isClosed(file, own), file).toBe(true);
  });

  test('leaves none behind when it is deleted', async () => {
    ok(await admin.delete(`/application/${application.id}`), 204);
    await expect.poll(async () => (await admin.get(`/application/${application.id}`)).status).toBe(404);
    await expect.poll(() => filesWith(dataDir)).toEqual([]);
  }, 45_000);
});

/** Returns whether the file, or a folder on the way to it, is closed to all but its owner. */
function isClosed(file: string, top: string): boolean {
  const open = statSync(file).mode & 0o077;
  return open === 0 || (file !== top && isClosed(path.dirname(file), top));
}

/** Returns the files below a folder that contain a mark. */
function filesWith(folder: string): { file: string; names: string[] }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      const names = marksIn(readFileSync(file, 'latin1'));
      return names.length > 0 ? [{ file, names }] : [];
    });
}
