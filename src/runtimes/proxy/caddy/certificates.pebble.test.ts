import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CaddyRouter } from '#runtimes/proxy/caddy/index.ts';
import { startPebble, type Pebble } from '#runtimes/proxy/caddy/pebble.fixture.ts';
import { startCaddyRouter, stopCaddyProxy } from '#runtimes/proxy/caddy/testing.ts';
import { echo, startUpstream, type TestUpstream } from '#runtimes/proxy/contract/upstreams.ts';
import { fetchFrom } from '#runtimes/proxy/contract/visitors.ts';
import type { CertificateStatus } from '#runtimes/router.ts';
import { freePort } from '#test/harness/free-port.ts';

/** Validity of certificates in seconds: so short that Caddy renews them within a test, after two thirds of their life. */
const VALIDITY_SECONDS = 30;

let directory: string;
let pebble: Pebble;
let router: CaddyRouter;
let upstream: TestUpstream;
let ports: { http: number; https: number };

const start = (https = ports.https) =>
  startCaddyRouter(directory, {
    port: ports.http,
    https: {
      port: https,
      directoryUrl: pebble.directoryUrl,
      email: 'ops@example.com',
      rootsFile: pebble.rootsFile,
      renewCheckMs: 1_000,
    },
  });

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'caddy-'));
  ports = { http: await freePort(), https: await freePort() };
  pebble = await startPebble(directory, ports, VALIDITY_SECONDS);
  upstream = await startUpstream(echo('a'));
  router = await start();
});

afterAll(async () => {
  await router.close();
  await stopCaddyProxy(directory);
  await upstream[Symbol.asyncDispose]();
  await pebble[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const route = (host: string, generation = 1) =>
  router.set(host, generation, [
    { host, protocol: 'HTTP', upstreams: [{ address: upstream.address, port: upstream.port }], certificate: true },
  ]);

const statusOf = async (host: string): Promise<CertificateStatus> => (await router.certificates([host]))[0]!;

const untilState = (host: string, state: CertificateStatus['state']) =>
  expect.poll(async () => (await statusOf(host)).state, { timeout: 40_000, interval: 200 }).toBe(state);

/** Visits a host over HTTPS; checks the name of the certificate, not its issuer. */
async function visit(host: string) {
  const sent = request({
    host: '127.0.0.1',
    port: ports.https,
    servername: host,
    headers: { host },
    rejectUnauthorized: false,
    agent: false,
  });
  sent.end();
  const [response] = await once(sent, 'response');
  const certificate = (response.socket as TLSSocket).getPeerCertificate();
  return { status: response.statusCode as number, body: await text(response), certificate };
}

/** Waits until a host has its certificate and is served with it, which is a moment later. */
async function untilServed(host: string): Promise<void> {
  await untilState(host, 'ISSUED');
  await expect.poll(() => visit(host).then(({ status }) => status, String)).toBe(200);
}

test('a host that asks for a certificate gets one, is served over HTTPS, and HTTP leads there', async () => {
  const host = 'issued.example.com';
  await route(host);
  await untilServed(host);
  const { expiresAt, lastError } = await statusOf(host);
  expect(expiresAt).toBeGreaterThan(Date.now());
  expect(lastError).toBeNull();
  const { status, body, certificate } = await visit(host);
  expect(status).toBe(200);
  expect(JSON.parse(body)).toMatchObject({
    name: 'a',
    headers: { 'x-forwarded-proto': 'https', 'x-forwarded-port': '443' },
  });
  expect(certificate.subjectaltname).toBe(`DNS:${host}`);
  for (const named of [host, `${host}.`, `${host}:${ports.http}`, `${host}.:80`]) {
    const plain = await fetchFrom(ports.http, named, { path: '/a?b=c' });
    expect(plain).toMatchObject({ status: 308, headers: { location: `https://${host}/a?b=c` } });
  }
});

test('a certificate is renewed before it expires', async () => {
  const host = 'renewed.example.com';
  await route(host);
  await untilState(host, 'ISSUED');
  const first = (await statusOf(host)).expiresAt!;
  await expect.poll(async () => (await statusOf(host)).expiresAt, { timeout: 40_000 }).toBeGreaterThan(first);
  expect(Date.now()).toBeLessThan(first);
  expect((await visit(host)).status).toBe(200);
});

test('a challenge that fails is told with its reason, and other hosts are served on', async () => {
  const [good, bad] = ['good.example.com', 'bad.example.com'];
  await pebble.pointTo(bad, '127.0.0.9');
  await route(good);
  await route(bad);
  await untilState(bad, 'FAILED');
  expect(await statusOf(bad)).toMatchObject({
    expiresAt: null,
    lastError: expect.stringMatching(/127\.0\.0\.9|connection refused/i),
  });
  await untilServed(good);
  await router.remove(bad);
});

test('a host that was taken away has no certificate shown to visitors any more', async () => {
  const host = 'gone.example.com';
  await route(host);
  await untilServed(host);
  await router.remove(host);
  await expect(visit(host)).rejects.toThrow();
  expect((await fetchFrom(ports.http, host)).status).toBe(404);
});

test('HTTPS is back after Caddy was killed, with the certificate that it had', async () => {
  const host = 'killed.example.com';
  await route(host);
  await untilState(host, 'ISSUED');
  const pid = router.pid!;
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => visit(host).then(({ status }) => status, String)).toBe(200);
  expect(router.pid).not.toBe(pid);
  expect((await statusOf(host)).state).toBe('ISSUED');
});

test('another control plane takes Caddy over with its certificates', async () => {
  const host = 'adopted.example.com';
  await route(host);
  await untilServed(host);
  const { pid } = router;
  await router.close();
  router = await start();
  expect(router.pid).toBe(pid);
  expect((await visit(host)).status).toBe(200);
});

test('a port of HTTPS that is taken is told on the certificate, and HTTP is served on', async () => {
  const own = mkdtempSync(join(tmpdir(), 'caddy-'));
  const host = 'blocked.example.com';
  const https = { port: upstream.port, directoryUrl: pebble.directoryUrl, email: '', rootsFile: pebble.rootsFile };
  const other = await startCaddyRouter(own, { https });
  try {
    await other.set(host, 1, [
      { host, protocol: 'HTTP', upstreams: [{ address: upstream.address, port: upstream.port }], certificate: true },
    ]);
    expect((await fetchFrom(other.port, host)).status).toBe(200);
    expect(await other.certificates([host])).toEqual([
      {
        host,
        state: 'FAILED',
        expiresAt: null,
        lastError: expect.stringContaining(`port ${upstream.port}: listen EADDRINUSE`),
      },
    ]);
  } finally {
    await other.close();
    await stopCaddyProxy(own);
    rmSync(own, { recursive: true });
  }
});
