import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';

export interface GitServerOptions {
  /** Folder with the repositories; `/name/…` is the repository `name`. */
  root: string;
  /** Credentials that the server requires; none if absent. */
  credentials?: { username: string; password: string };
  /** Path prefixes that the server redirects to a URL. */
  redirects?: Record<string, string>;
  /** Requests that the server never answers: all of them, or those whose URL matches. */
  hangs?: boolean | RegExp;
  /** Contents of Git LFS by their SHA-256. */
  objects?: Map<string, string>;
  /** Faults of the LFS downloads: another address, a redirect, another content, or none. */
  leads?: { href?: string; redirect?: string; contents?: string; without?: boolean };
}

export interface GitServer extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  url: string;
  /** `Authorization` of each request, null without. */
  authorizations: (string | null)[];
  requests: string[];
}

/** Starts a real git server: `git http-backend` behind HTTP on loopback. */
export async function startGitServer(options: GitServerOptions): Promise<GitServer> {
  const authorizations: GitServer['authorizations'] = [];
  const requests: string[] = [];
  const server = createServer((request, response) => {
    authorizations.push(request.headers.authorization ?? null);
    requests.push(request.url!);
    if (options.hangs instanceof RegExp ? options.hangs.test(request.url!) : options.hangs) return;
    const redirect = Object.entries(options.redirects ?? {}).find(([prefix]) => request.url!.startsWith(prefix));
    if (redirect) {
      const [prefix, target] = redirect;
      response.writeHead(301, { location: target + request.url!.slice(prefix.length) }).end();
    } else if (!mayRead(options, request))
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('who are you?');
    else if (request.url!.includes('/info/lfs/')) void answerLfs(options, request, response);
    else runBackend(options.root, request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorizations,
    requests,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function mayRead({ credentials }: GitServerOptions, request: IncomingMessage): boolean {
  if (!credentials) return true;
  const basic = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
  return request.headers.authorization === `Basic ${basic}`;
}

/** Answers requests of Git LFS: the batch API, which names the download of each content, and the contents. */
async function answerLfs(
  { objects = new Map(), leads = {} }: GitServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
) {
  if (!request.url!.endsWith('/objects/batch')) {
    if (leads.redirect) return void response.writeHead(302, { location: leads.redirect }).end();
    return void response.end(leads.contents ?? objects.get(path.posix.basename(request.url!)));
  }
  const wanted = (JSON.parse(await text(request)) as { objects: { oid: string; size: number }[] }).objects;
  const href = `http://${request.headers.host}${request.url!.replace('/batch', '')}`;
  const found = wanted.map(({ oid, size }) => ({
    oid,
    size,
    ...(leads.without ? {} : { actions: { download: { href: leads.href ?? `${href}/${oid}` } } }),
  }));
  response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' });
  response.end(JSON.stringify({ transfer: 'basic', objects: found }));
}

/** Runs git's own backend through CGI (RFC 3875). */
function runBackend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url!, 'http://server');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: root,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method!,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => child.kill());
  let head = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    if (response.headersSent) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const headers = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(/: /) as [string, string]);
    const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
    response.writeHead(Number.parseInt(status, 10), Object.fromEntries(headers.filter(([name]) => name !== 'Status')));
    response.write(head.subarray(end + 4));
  });
  child.stdout.on('end', () => response.end());
}
