import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Server as NetServer } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { checkProtectedUrl, createHttpClient, isForbiddenAddress, type Lookup } from '#platform/http-client/index.ts';
import { selfSigned } from '#test/harness/self-signed.ts';

const servers: (NetServer & { closeAllConnections?(): void })[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

const listening = (server: NetServer) =>
  new Promise<number>((resolve) => {
    servers.push(server);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });

const serve = (listener: RequestListener) => listening(createServer(listener));

const LOOPBACK = { allowedPrivateAddresses: ['127.0.0.0/8'] };
const answering =
  (...answers: string[]): Lookup =>
  async () => [{ address: answers.length > 1 ? answers.shift()! : answers[0]!, family: 4 }];

describe('an address', () => {
  test.each([
    '127.0.0.1', '127.255.255.254', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1',
    '169.254.169.254', '100.64.0.1', '100.100.100.200', '192.0.0.192', '168.63.129.16', '198.18.0.1', '224.0.0.1',
    '240.0.0.1', '255.255.255.255', '::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:a00:1', 'fe80::1',
    'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '64:ff9b::7f00:1', '64:ff9b::808:808',
    '64:ff9b:1::1', '2002:7f00:1::', '2001::1', '2001:db8::1', '100::1', '4000::1',
    '0177.0.0.1', '0x7f.0.0.1', '2130706433', '127.1', 'nonsense', '',
  ])('%s is forbidden', (address) => expect(isForbiddenAddress(address, [])).toBe(true)); // prettier-ignore

  test.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '::ffff:8.8.8.8'])(
    '%s is not',
    (address) => expect(isForbiddenAddress(address, [])).toBe(false),
  );

  test('in a network that the settings allow is not, and its neighbour is', () => {
    expect(isForbiddenAddress('10.1.2.3', ['10.1.0.0/16'])).toBe(false);
    expect(isForbiddenAddress('::ffff:10.1.2.3', ['10.1.0.0/16'])).toBe(false);
    expect(isForbiddenAddress('10.2.2.3', ['10.1.0.0/16'])).toBe(true);
    expect(isForbiddenAddress('fd00::1', ['fd00::/8', '10.0.0.0/8'])).toBe(false);
  });
});

describe('a URL at creation', () => {
  const { checkUrl } = createHttpClient({ allowedPrivateAddresses: [] });

  test.each([
    'http://127.0.0.1/x', 'http://2130706433/', 'http://0x7f.1/', 'http://0177.0.0.1/', 'http://127.1/', 'http://[::1]:80/',
    'http://[::ffff:127.0.0.1]/', 'http://169.254.169.254/latest/meta-data', 'https://１２７.0.0.1/', 'http://10.0.0.1.:80/',
  ])('%s is 400, because it is a private address', (url) => {
    expect(() => checkUrl(url, 'target_url')).toThrow(/^target_url: .*private, local or reserved/);
  }); // prettier-ignore

  test.each([
    '',
    'nonsense',
    '/path',
    'ftp://example.org/',
    'file:///etc/passwd',
    'http://user:pw@example.org/',
    'http://',
  ])('%s is 400, because it cannot be called', (url) =>
    expect(() => checkUrl(url, 'target_url')).toThrow(/^target_url: must /),
  );

  test('with a public address or a name passes: the name is checked when it is called', () => {
    for (const url of ['https://example.org/hook?a=b', 'http://1.1.1.1/', 'http://localhost:1/'])
      checkUrl(url, 'target_url');
  });
});

test('a URL that credentials go to is 400 over http, but for the literal addresses that the operator allows', () => {
  const check = (url: string) => checkProtectedUrl(url, 'url', ['10.0.0.0/8']);
  for (const url of ['http://example.org/', 'http://1.1.1.1/'])
    expect(() => check(url), url).toThrow(/^url: must begin with https:/);
  expect(() => check('https://user:pw@example.org/')).toThrow(/^url: must not carry a user name or password/);
  for (const url of ['https://example.org/', 'http://10.0.0.5:8200']) check(url);
});

describe('a request', () => {
  test('sends method, headers and body, and answers status, headers and body, whatever the status', async () => {
    const port = await serve((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () =>
        response
          .writeHead(418, { 'x-seen': `${request.method} ${request.url} ${request.headers['x-a']}` })
          .end(Buffer.concat(chunks)),
      );
    });
    const answer = await createHttpClient(LOOPBACK).request(`http://127.0.0.1:${port}/a?b=c`, {
      method: 'POST',
      headers: { 'x-a': '1' },
      body: 'hello',
    });
    expect(answer).toMatchObject({ status: 418, headers: { 'x-seen': 'POST /a?b=c 1' }, truncated: false });
    expect(answer.body.toString()).toBe('hello');
  });

  test('to a literal private address is refused before anything is connected', async () => {
    let called = 0;
    const port = await serve((_request, response) => void response.end(String(++called)));
    const client = createHttpClient({ allowedPrivateAddresses: [] });
    for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '127.1'])
      await expect(client.request(`http://${host}:${port}/`)).rejects.toMatchObject({ failure: 'forbidden_address' });
    expect(called).toBe(0);
  });

  test('to a name that resolves to a private address is refused', async () => {
    let called = 0;
    const port = await serve((_request, response) => void response.end(String(++called)));
    const client = createHttpClient({ allowedPrivateAddresses: [] });
    await expect(client.request(`http://localhost:${port}/`)).rejects.toMatchObject({
      failure: 'forbidden_address',
      message: expect.stringContaining('QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES'),
    });
    expect(called).toBe(0);
  });

  test('to a name whose address changes between check and connection is refused: each connection is checked', async () => {
    let called = 0;
    const port = await serve((_request, response) => void response.end(String(++called)));
    const client = createHttpClient({ allowedPrivateAddresses: [], lookup: answering('203.0.114.1', '127.0.0.1') });
    await expect(client.addressPolicy('rebind.test')).resolves.toEqual(['203.0.114.1']);
    await expect(client.request(`http://rebind.test:${port}/`)).rejects.toMatchObject({ failure: 'forbidden_address' });
    expect(called).toBe(0);
  });

  test('to a name with a private address does not tell that address', async () => {
    const client = createHttpClient({ allowedPrivateAddresses: [], lookup: answering('10.20.30.40') });
    for (const asked of [client.request('http://vault.corp.test/'), client.addressPolicy('vault.corp.test')])
      await expect(asked).rejects.toMatchObject({
        failure: 'forbidden_address',
        message: expect.not.stringContaining('10.20.30.40'),
      });
  });

  test.each(['authorization', 'Private-Token', 'X-Vault-Token', 'cookie'])(
    'with credentials (%s) is sent over http to the networks of the operator only',
    async (name) => {
      let called = 0;
      const port = await serve((_request, response) => void response.end(String(++called)));
      const headers = { [name]: 'secret' };
      const outside = createHttpClient({ ...LOOPBACK, lookup: answering('203.0.114.1') });
      const refused = { failure: 'invalid_url', message: expect.stringContaining('https') };
      for (const host of ['charts.test', '203.0.114.1'])
        await expect(outside.request(`http://${host}:${port}/`, { headers })).rejects.toMatchObject(refused);
      expect(called).toBe(0);
      const inside = createHttpClient({ ...LOOPBACK, lookup: answering('127.0.0.1') });
      expect((await inside.request(`http://charts.test:${port}/`, { headers })).status).toBe(200);
      expect((await inside.request(`http://127.0.0.1:${port}/`, { headers })).status).toBe(200);
    },
  );

  test('whose URL is a secret is sent over http to the networks of the operator only', async () => {
    const port = await serve((_request, response) => void response.end());
    const outside = createHttpClient({ ...LOOPBACK, lookup: answering('203.0.114.1') });
    for (const host of ['hooks.test', '203.0.114.1'])
      await expect(outside.request(`http://${host}:${port}/s`, { secretUrl: true })).rejects.toMatchObject({
        failure: 'invalid_url',
        message: expect.stringContaining('https'),
      });
    const inside = createHttpClient({ ...LOOPBACK, lookup: answering('127.0.0.1') });
    expect((await inside.request(`http://hooks.test:${port}/s`, { secretUrl: true })).status).toBe(200);
  });

  test('connects to exactly the address that was checked, and asks the resolver once for it', async () => {
    let lookups = 0;
    const port = await serve((request, response) => void response.end(request.headers.host));
    const client = createHttpClient({
      ...LOOPBACK,
      lookup: async () => {
        lookups++;
        return [
          { address: '10.9.9.9', family: 4 },
          { address: '127.0.0.1', family: 4 },
        ];
      },
    });
    expect((await client.request(`http://name.test:${port}/`)).body.toString()).toBe(`name.test:${port}`);
    expect(lookups).toBe(1);
  });

  test('answers a redirect instead of following it', async () => {
    let followed = 0;
    const inner = await serve((_request, response) => void response.end(String(++followed)));
    const port = await serve(
      (_request, response) => void response.writeHead(302, { location: `http://127.0.0.1:${inner}/` }).end(),
    );
    const answer = await createHttpClient(LOOPBACK).request(`http://127.0.0.1:${port}/`);
    expect([answer.status, followed]).toEqual([302, 0]);
  });

  test('that is not answered in time fails, and closes its connection', async () => {
    let closed: () => void;
    const hungUp = new Promise<void>((resolve) => (closed = resolve));
    const port = await serve((request) => request.socket.once('close', () => closed()));
    const client = createHttpClient(LOOPBACK);
    await expect(client.request(`http://127.0.0.1:${port}/`, { timeoutMs: 100 })).rejects.toMatchObject({
      failure: 'timeout',
    });
    await hungUp;
  });

  test('whose answer drips fails at the same time limit', async () => {
    const port = await serve((request, response) => {
      const timer = setInterval(() => response.write('x'), 20);
      request.socket.once('close', () => clearInterval(timer));
    });
    const client = createHttpClient(LOOPBACK);
    await expect(client.request(`http://127.0.0.1:${port}/`, { timeoutMs: 150 })).rejects.toMatchObject({
      failure: 'timeout',
    });
  });

  test('reads no more of an endless answer than asked for', async () => {
    const port = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    });
    const answer = await createHttpClient(LOOPBACK).request(`http://127.0.0.1:${port}/`, { maxBytes: 1000 });
    expect([answer.body.length, answer.truncated]).toEqual([1000, true]);
  });

  test('to a server that hangs up in whatever moment is an answer or a failure, and nothing else happens', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('uncaughtException', note);
    onTestFinished(() => void process.off('uncaughtException', note));
    const ends = [
      '',
      'HTTP/1.1 200 OK\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nrest',
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n',
      `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${'x'.repeat(65_536)}`,
      `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${'x'.repeat(1_000_000)}`,
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`,
    ];
    const port = await listening(
      createTcpServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', (head) => void socket.end(ends[Number(/\/(\d+)/.exec(String(head))![1])]!));
      }),
    );
    const client = createHttpClient(LOOPBACK);
    for (const maxBytes of [0, 3, 65_535, 65_536, 10_000_000])
      for (const at of ends.keys()) {
        const outcome = await client.request(`http://127.0.0.1:${port}/${at}`, { maxBytes, timeoutMs: 2000 }).then(
          ({ status, body }) => [status, body.length <= maxBytes],
          (error: unknown) => (error as { failure?: string }).failure,
        );
        expect([[200, true], 'connection'], `${at} ${maxBytes}`).toContainEqual(outcome);
      }
    expect(unhandled).toEqual([]);
  });

  test('over TLS to a certificate that nobody trusts fails and says so', async () => {
    let called = 0;
    const port = await listening(
      createTlsServer(selfSigned(), (_request, response) => void response.end(String(++called))),
    );
    await expect(createHttpClient(LOOPBACK).request(`https://localhost:${port}/`)).rejects.toMatchObject({
      failure: 'tls',
      message: expect.stringContaining('certificate'),
    });
    expect(called).toBe(0);
  });

  test('to a closed port, a name that is none, or something that is not HTTP fails with the reason', async () => {
    const port = await listening(createTcpServer((socket) => void socket.resume().end('SSH-2.0-x\r\n')));
    const client = createHttpClient(LOOPBACK);
    await expect(client.request(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ failure: 'connection' });
    const closed = createTcpServer();
    const free = await listening(closed);
    await new Promise((resolve) => closed.close(resolve));
    servers.splice(servers.indexOf(closed), 1);
    await expect(client.request(`http://127.0.0.1:${free}/`)).rejects.toMatchObject({
      failure: 'connection',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    const nowhere = createHttpClient({
      ...LOOPBACK,
      lookup: () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
    });
    await expect(nowhere.request('http://nowhere.test/')).rejects.toMatchObject({ failure: 'unknown_host' });
  });

  test('that its caller gives up ends with the reason of the caller', async () => {
    const port = await serve(() => undefined);
    const stop = new AbortController();
    const pending = createHttpClient(LOOPBACK).request(`http://127.0.0.1:${port}/`, { signal: stop.signal });
    stop.abort(new Error('shutting down'));
    await expect(pending).rejects.toThrow('shutting down');
  });

  test('leaves no connection open', async () => {
    const server = createServer((_request, response) => void response.end('x'));
    const port = await listening(server);
    const closed = new Promise<void>((resolve) =>
      server.on('connection', (socket) => socket.once('close', () => resolve())),
    );
    await createHttpClient(LOOPBACK).request(`http://127.0.0.1:${port}/`);
    await closed;
  });
});

describe('the policy for programs that connect by themselves', () => {
  test('answers the addresses of a host, and refuses it when one of them is forbidden or the spelling is odd', async () => {
    const open = createHttpClient({ allowedPrivateAddresses: [], lookup: answering('93.184.216.34') });
    await expect(open.addressPolicy('example.org')).resolves.toEqual(['93.184.216.34']);
    const mixed = createHttpClient({
      allowedPrivateAddresses: [],
      lookup: async () => [
        { address: '93.184.216.34', family: 4 },
        { address: '::1', family: 6 },
      ],
    });
    for (const host of ['example.org', '2130706433', '0x7f.1', '::1', '[::1]'])
      await expect(mixed.addressPolicy(host)).rejects.toMatchObject({ failure: 'forbidden_address' });
    await expect(mixed.addressPolicy('a b')).rejects.toMatchObject({ failure: 'invalid_url' });
  });
});
