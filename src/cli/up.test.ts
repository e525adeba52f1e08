import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGunzip, gunzipSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { packFolder, upCommand } from '#cli/up.ts';
import { readSettings } from '#platform/settings/index.ts';

let home: string;
let folder: string;
let tokenFile: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'qd-up-'));
  folder = path.join(home, 'folder');
  tokenFile = path.join(home, 'token');
  mkdirSync(folder);
  writeFileSync(path.join(home, 'admin-token'), 'local\n');
  writeFileSync(tokenFile, 'given\n');
  writeFileSync(path.join(folder, 'Dockerfile'), 'FROM scratch\n');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

interface Received {
  call: string;
  authorization: string | undefined;
  body: Buffer;
}

type Answers = (request: IncomingMessage, response: ServerResponse, calls: number) => void;

/** Service on a port of its own, with all that it has received. */
async function serve(answers: Answers): Promise<{ port: number; url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const { method, url, headers } = request;
      received.push({ call: `${method} ${url}`, authorization: headers.authorization, body });
      answers(request, response, received.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, received };
}

const APPLICATION = {
  id: 'x',
  environment: { id: 'e' },
  git_repository: { root_path: '/', deployed_commit_id: 'a'.repeat(40) },
  dockerfile_path: null,
};
const UPLOADED = {
  state: 'DEPLOYED',
  deployment_requests_count: 0,
  deployment_request_id: 'r',
  files: 1,
  git_commit_id: 'a'.repeat(40),
};
const LINKS = { results: [{ url: 'http://app.localhost:8082' }] };
const read = ({ url }: IncomingMessage) => (url!.endsWith('/link') ? LINKS : APPLICATION);
const deploys: Answers = (request, response) =>
  response.end(JSON.stringify(request.method === 'GET' ? read(request) : UPLOADED));

const up = (options: { url?: string; tokenFile?: string }, port = 1) =>
  upCommand(readSettings({ QUARTERDECK_DATA_DIR: home, QUARTERDECK_PORT: String(port) }), folder, {
    application: 'x',
    ...options,
  });

describe('the token', () => {
  test("of this machine's administrator goes to the service of its settings", async () => {
    const { port, url, received } = await serve(deploys);
    const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    await up({}, port);
    expect(printed.mock.calls).toEqual([
      [`Uploaded 1 file as ${'a'.repeat(40)}.`],
      ['DEPLOYED\n  http://app.localhost:8082'],
    ]);
    printed.mockRestore();
    await up({ url: `${url}/api/v1/` }, port);
    expect(new Set(received.map(({ authorization }) => authorization))).toEqual(new Set(['Token local']));
    expect(received.map(({ call }) => call)).toContain('GET /api/v1/application/x');
  });

  test("of this machine's administrator is sent to no other address", async () => {
    const { port, url, received } = await serve(deploys);
    const { host } = new URL(url);
    for (const other of [
      url,
      `http://127.0.0.1:1@${host}`,
      `http://127.0.0.1:1@${host}/`,
      `http://localhost:${port}`,
      `https://127.0.0.1:1`,
    ])
      await expect(up({ url: other }), other).rejects.toThrow(/is not the service of this machine.*--token-file/);
    await expect(up({ url: 'file:///etc' })).rejects.toThrow(/must be an address/);
    expect(received).toEqual([]);
  });

  test('of a file goes to the address that is named, and not where that redirects', async () => {
    const other = await serve(deploys);
    const { url, received } = await serve((_request, response) =>
      response.writeHead(307, { location: `${other.url}/application/x` }).end(),
    );
    await expect(up({ url, tokenFile })).rejects.toThrow('GET /application/x was answered 307');
    expect(received.map(({ authorization }) => authorization)).toEqual(['Token given']);
    expect(other.received).toEqual([]);
  });
});

test('a service that is too busy is asked again when it says, with the whole archive', async () => {
  const { url, received } = await serve((request, response, calls) => {
    if (calls === 1 || calls === 3) return response.writeHead(calls === 1 ? 429 : 503, { 'retry-after': '1' }).end();
    return deploys(request, response, calls);
  });
  const began = performance.now();
  await up({ url, tokenFile });
  expect(performance.now() - began).toBeGreaterThan(1900);
  expect(received.map(({ call }) => call)).toEqual([
    'GET /application/x',
    'GET /application/x',
    'POST /application/x/source',
    'POST /application/x/source',
    'GET /application/x',
    'GET /application/x/link',
  ]);
  expect(gunzipSync(received[3]!.body)).toEqual(gunzipSync(received[2]!.body));
});

test('a service that does not answer is told with the reason', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await expect(up({}, port)).rejects.toThrow(
    new RegExp(`^GET http://127\\.0\\.0\\.1:${port}/application/x got no answer: .*ECONNREFUSED`),
  );
});

test('a deployment that another one has taken the place of is no success', async () => {
  const { url } = await serve((request, response) =>
    response.end(
      JSON.stringify(request.method === 'GET' ? APPLICATION : { ...UPLOADED, git_commit_id: 'b'.repeat(40) }),
    ),
  );
  await expect(up({ url, tokenFile })).rejects.toThrow(
    /A later deployment took the place .* a{40} is deployed, not b{40}/,
  );
});

test('the end of a request that waits behind another one is waited for, and its cause is told', async () => {
  const cause = { code: 'SCRIPT_MISSING', summary: 'It calls none.', fix: 'Add it.', lines: ['Missing script'] };
  const states = [
    { state: 'DEPLOYED', deployment_requests_count: 1 },
    { state: 'DEPLOYING', deployment_requests_count: 1 },
    { state: 'BUILD_ERROR', deployment_requests_count: 0 },
    { state: 'BUILD_ERROR', deployment_requests_count: 0, error: { message: 'RUN: no \u001b[2J', cause } },
  ];
  const { url } = await serve((request, response) => {
    if (request.url!.includes('/status')) return response.end(JSON.stringify(states.shift()));
    return response.end(
      JSON.stringify(request.method === 'GET' ? APPLICATION : { ...UPLOADED, deployment_requests_count: 2 }),
    );
  });
  await expect(up({ url, tokenFile })).rejects.toThrow(
    'The deployment ended with BUILD_ERROR: RUN: no \\u001b[2J\nSCRIPT_MISSING: It calls none.\n  Missing script\nAdd it.',
  );
  expect(states).toEqual([]);
});

test('the lines of the deployment are printed as they come, each once, those of other services not', async () => {
  const line = (text: string, id = 'x') => ({ details: { transmitter: { id } }, message: { safe_message: text } });
  const logs = [
    [],
    [line('cloned'), line('other', 'y')],
    [line('cloned'), line('other', 'y'), line('built \u001b[2J')],
  ];
  const under = { state: 'DEPLOYING', deployment_requests_count: 1, deployment_request_id: 'r', execution_id: 'e-2' };
  const states = [
    // The deployment before it is still what the status tells of.
    { ...under, deployment_request_id: 'former', execution_id: 'e-1' },
    under,
    under,
    { ...under, state: 'DEPLOYED', deployment_requests_count: 0 },
  ];
  const { url, received } = await serve((request, response) => {
    if (request.url!.includes('/status')) return response.end(JSON.stringify(states.shift()));
    if (request.url!.includes('/logs')) return response.end(JSON.stringify(logs.shift()));
    if (request.method === 'GET') return response.end(JSON.stringify(read(request)));
    return response.end(JSON.stringify({ ...UPLOADED, deployment_requests_count: 1 }));
  });
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => printed.mockRestore());
  await up({ url, tokenFile });
  expect(printed.mock.calls).toEqual([['  cloned'], ['  built \\u001b[2J']]);
  expect(received.filter(({ call }) => call.includes('/logs')).map(({ call }) => call)).toEqual(
    Array.from({ length: 3 }, () => 'GET /environment/e/logs?version=e-2'),
  );
});

test('a log that may not be read is told once, and the deployment is waited for', async () => {
  const under = { state: 'DEPLOYING', deployment_requests_count: 1, deployment_request_id: 'r', execution_id: 'e-2' };
  const states = [under, under, { ...under, state: 'DEPLOYED', deployment_requests_count: 0 }];
  const { url } = await serve((request, response) => {
    if (request.url!.includes('/status')) return response.end(JSON.stringify(states.shift()));
    if (request.url!.includes('/logs')) return response.writeHead(403).end('no right');
    if (request.method === 'GET') return response.end(JSON.stringify(read(request)));
    return response.end(JSON.stringify({ ...UPLOADED, deployment_requests_count: 1 }));
  });
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  onTestFinished(() => printed.mockRestore());
  await up({ url, tokenFile });
  expect(printed.mock.calls).toEqual([[expect.stringMatching(/^The log of the deployment cannot be shown\. .*403/)]]);
});

test('a service that is away while it deploys is asked again; one that refuses is not', async () => {
  const answers = ['away', '502', '{"state":"DEPLOYING","deployment_requests_count":1}', '404'];
  const { url } = await serve((request, response) => {
    if (!request.url!.includes('/status'))
      return response.end(
        JSON.stringify(request.method === 'GET' ? APPLICATION : { ...UPLOADED, deployment_requests_count: 1 }),
      );
    const answer = answers.shift()!;
    if (answer === 'away') return response.destroy();
    return answer.length === 3 ? response.writeHead(Number(answer)).end() : response.end(answer);
  });
  await expect(up({ url, tokenFile })).rejects.toThrow('GET /application/x/status?wait=2 was answered 404');
  expect(answers).toEqual([]);
});

/** Names of what is packed. */
async function namesOf(archive: Readable): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of archive.pipe(createGunzip()).pipe(extract())) {
    names.push(entry.header.name);
    entry.resume();
  }
  return names;
}

describe('the archive', () => {
  const write = (name: string, text = '') => {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  };
  const packed = async () => namesOf(await packFolder(folder, APPLICATION));

  test('leaves out .git and what .dockerignore excludes, and has the Dockerfile and the ignore file', async () => {
    for (const name of ['.git/config', 'lib/.git/x', 'lib/.git.txt', 'secret', 'a/secret']) write(name);
    write('.dockerignore', '**/secret\nDockerfile\n.dockerignore\n!a/secret\n');
    expect(await packed()).toEqual(['.dockerignore', 'Dockerfile', 'a/secret', 'lib/.git.txt']);
  });

  test('leaves out what an image needs not, where neither Dockerfile nor .dockerignore is there', async () => {
    for (const name of ['index.js', '.env', 'node_modules/a/index.js', 'web/node_modules/b.js']) write(name);
    expect(await packed()).toContain('node_modules/a/index.js');
    rmSync(path.join(folder, 'Dockerfile'));
    expect(await packed()).toEqual(['index.js']);
    write('.dockerignore');
    expect(await packed()).toContain('node_modules/a/index.js');
  });

  test('follows a .dockerignore that is a link within the folder', async () => {
    write('secret');
    write('config/ignore', 'secret\nconfig\n');
    symlinkSync('config/ignore', path.join(folder, '.dockerignore'));
    expect(await packed()).toEqual(['.dockerignore', 'Dockerfile', 'config/ignore']);
  });

  test('is not made with a .dockerignore that leads out of the folder', async () => {
    writeFileSync(path.join(home, 'ignore'), 'secret\n');
    symlinkSync('../ignore', path.join(folder, '.dockerignore'));
    await expect(packed()).rejects.toThrow('.dockerignore is a link that leads out of the folder');
  });
});
