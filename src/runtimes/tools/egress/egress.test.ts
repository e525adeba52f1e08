import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createServer, request } from '#kernel/node-http.ts';
import { EGRESS_PROGRAM, egressFiles } from '#runtimes/tools/egress/files.ts';
import { createEgressProxy, type EgressProxyOptions } from '#runtimes/tools/egress/proxy.ts';
import { ruleFor, targetOf } from '#runtimes/tools/egress/rules.ts';

const LOOPBACK = ['127.0.0.0/8'];
const listed = (host: string, port: number | null = null, isPrivate = false) => ({ host, port, isPrivate });

const seen: { url: string; headers: Record<string, unknown> }[] = [];
const origin = createServer((incoming, response) => {
  seen.push({ url: incoming.url!, headers: incoming.headers });
  void text(incoming).then((body) => response.writeHead(201, { 'x-own': 'yes' }).end(`${incoming.method} ${body}`));
});
let port: number;
const open: Server[] = [origin];
const listen = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
};
beforeAll(async () => void (port = await listen(origin)));
afterAll(() => {
  for (const server of open) server.close().closeAllConnections();
});

/** A proxy with these rules; names resolve to loopback unless `names` says otherwise. */
async function proxyWith(options: Partial<EgressProxyOptions>, names: Record<string, string[]> = {}) {
  const lines: string[] = [];
  const resolve = async (host: string) => names[host] ?? ['127.0.0.1'];
  const server = createEgressProxy({ rules: [], allowedPrivateAddresses: [], resolve, log: (line) => lines.push(line), ...options }); // prettier-ignore
  open.push(server);
  const at = await listen(server);
  /** A plain request in absolute form. */
  const get = async (url: string, body = '') => {
    const sent = request({ host: '127.0.0.1', port: at, path: url, method: body ? 'POST' : 'GET', agent: false, headers: { 'proxy-authorization': 'Basic eA==' } }); // prettier-ignore
    sent.end(body);
    const [answer] = await once(sent, 'response');
    return { status: answer.statusCode as number, headers: answer.headers, body: await text(answer) };
  };
  /** A tunnel, and what a request through it answers. */
  const tunnel = async (authority: string) => {
    const socket = connect(at, '127.0.0.1');
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    socket.write('GET /through HTTP/1.1\r\nHost: inside\r\nConnection: close\r\n\r\n');
    return text(socket);
  };
  return { get, tunnel, lines };
}

describe('the proxy of an execution', () => {
  test('lets through to listed hosts, in both forms, and takes its own headers off', async () => {
    const { get, tunnel, lines } = await proxyWith({ rules: [listed('shop.example')], allowedPrivateAddresses: LOOPBACK }); // prettier-ignore
    const answer = await get(`http://shop.example:${port}/a?b=1`, 'text');
    expect(answer).toMatchObject({ status: 201, body: 'POST text', headers: { 'x-own': 'yes' } });
    expect(seen.at(-1)).toMatchObject({ url: '/a?b=1', headers: { host: `shop.example:${port}` } });
    expect(seen.at(-1)!.headers).not.toHaveProperty('proxy-authorization');
    expect(await tunnel(`shop.example:${port}`)).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 201 /);
    expect(lines).toEqual([]);
  });

  test('refuses everything else, says so once, and nothing is connected to', async () => {
    const { get, tunnel, lines } = await proxyWith({ rules: [listed('shop.example', 443)], allowedPrivateAddresses: LOOPBACK }); // prettier-ignore
    const before = seen.length;
    for (const _ of [1, 2]) {
      expect((await get(`http://other.example:${port}/`)).status).toBe(403);
      expect(await tunnel(`other.example:${port}`)).toMatch(/^HTTP\/1\.1 403 /);
    }
    expect((await get(`http://shop.example:${port}/`)).status).toBe(403);
    expect((await get('/not-a-proxy-request')).status).toBe(400);
    expect(await tunnel('nonsense')).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toHaveLength(before);
    expect(lines).toEqual([
      `Refused a connection: other.example:${port} is not among the hosts that may be reached.`,
      `Refused a connection: shop.example:${port} is not among the hosts that may be reached.`,
    ]);
  });

  test('refuses listed names of private addresses, in whatever spelling, unless they are allowed', async () => {
    const rules = [listed('*')];
    const names = { 'inside.example': ['10.0.0.1'], 'metadata.example': ['169.254.169.254'], 'mapped.example': ['::ffff:127.0.0.1'] }; // prettier-ignore
    const shut = await proxyWith({ rules }, names);
    for (const host of [
      'inside.example',
      'metadata.example',
      'mapped.example',
      '127.0.0.1',
      '0x7f.1',
      '2130706433',
      '[::1]',
      '[fd00::1]',
    ])
      // prettier-ignore
      expect([host, (await shut.get(`http://${host}:${port}/`)).status]).toEqual([host, 403]);
    const allowed = await proxyWith({ rules, allowedPrivateAddresses: LOOPBACK });
    expect((await allowed.get(`http://127.0.0.1:${port}/`)).status).toBe(201);
    const named = await proxyWith({ rules: [listed('model.example', port, true)] });
    expect((await named.get(`http://model.example:${port}/`)).status).toBe(201);
  });

  test('connects to the address that it looked at: a name that changes afterwards changes nothing', async () => {
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    const resolve = async () => answers.shift() ?? ['10.0.0.1'];
    const { get } = await proxyWith({ rules: [listed('shop.example')], allowedPrivateAddresses: LOOPBACK, resolve });
    expect((await get(`http://shop.example:${port}/`)).status).toBe(201);
    expect((await get(`http://shop.example:${port}/`)).status).toBe(403);
  });

  test('a host that cannot be reached is told from one that may not be', async () => {
    const rules = [listed('*')];
    const resolve = async (host: string) => (host === 'nowhere.example' ? [] : ['127.0.0.1']);
    const { get, tunnel, lines } = await proxyWith({ rules, allowedPrivateAddresses: LOOPBACK, resolve });
    expect((await get('http://nowhere.example/')).status).toBe(502);
    expect(await tunnel('closed.example:1')).toMatch(/^HTTP\/1\.1 502 [^]*ECONNREFUSED/);
    expect(lines).toEqual([]);
  });

  test('runs from the files that a container gets', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'qd-egress-'));
    for (const { path: name, content } of await egressFiles()) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      writeFileSync(path.join(folder, name), content);
    }
    const config = { address: '127.0.0.1', port: 0, rules: [listed('a.example', 443), listed('::1')], allowedPrivateAddresses: [] }; // prettier-ignore
    writeFileSync(path.join(folder, 'egress.json'), JSON.stringify(config));
    const program = spawn(process.execPath, [EGRESS_PROGRAM, 'egress.json'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] }); // prettier-ignore
    const [line] = await once(createInterface(program.stdout), 'line');
    expect(line).toBe('Can be reached: a.example:443, [::1].');
    program.kill();
    expect(await once(program, 'exit')).toEqual([0, null]);
    rmSync(folder, { recursive: true });
  });
});

test('a pattern is for what is below a name, and a port is for itself', () => {
  const rules = [listed('*.example.com', 443)];
  const isListed = (authority: string) => ruleFor(rules, targetOf(authority, 443)!) !== undefined;
  expect(['a.example.com', 'a.b.example.com', 'A.EXAMPLE.com.'].map(isListed)).toEqual([true, true, true]);
  expect(['example.com', 'badexample.com', 'example.com.evil.org', 'a.example.com:444'].map(isListed)).toEqual([false, false, false, false]); // prettier-ignore
  for (const wrong of ['a@b', 'a:0', 'a:70000', 'a/b', '', 'a b']) expect([wrong, targetOf(wrong, 80)]).toEqual([wrong, null]); // prettier-ignore
});
