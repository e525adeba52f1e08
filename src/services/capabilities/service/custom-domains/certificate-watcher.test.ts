import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { CertificateWatcher } from '#services/capabilities/service/custom-domains/certificate-watcher.ts';
import { NO_ROUTER } from '#runtimes/no-router.ts';
import { newId } from '#kernel/ids.ts';
import { RuntimeError, type ClusterRuntimes, type Runtime } from '#runtimes/runtime.ts';
import type { CertificateStatus, Router } from '#runtimes/router.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const app = useApp();
useEngine(app);
const withCaddy = useApp({ QUARTERDECK_PROXY: 'caddy' });
useEngine(withCaddy);

/** A proven domain that asks for a certificate, and its certificate as the API answers it. */
async function provenDomain(admin: Actor, at = app) {
  const { application } = await makeExample(admin);
  const url = `/application/${application.id}/customDomain`;
  const domain = `${newId()}.example.com`;
  const { id, certificate } = ok(await admin.post(url, { domain, generate_certificate: true }), 201);
  expect(certificate).toMatchObject({ expires_at: null, last_error: null });
  await at.db.updateTable('custom_domain').set({ proof_state: 'VALIDATED' }).where('id', '=', id).execute();
  const { id: node } = await at.db.selectFrom('node').select('id').executeTakeFirstOrThrow();
  await at.db.updateTable('cluster').set({ node_id: node }).execute();
  const answered = async () => ok(await admin.get(url), 200).results[0].certificate;
  const checked = async () =>
    ok(await admin.get(`/application/${application.id}/checkCustomDomain`), 200).results[0].certificate;
  return { url, id, domain, node, answered, checked };
}

const look = async (node: string, router: Router, registry = new Registry()) => {
  await new CertificateWatcher(app.platform, async () => router, node, registry).look();
  return registry;
};

const proxyWith = (of: Omit<CertificateStatus, 'host'>): Router => ({
  ...NO_ROUTER,
  certificates: async (hosts) => hosts.map((host) => ({ host, ...of })),
});

test('a domain that was just created says at once that the built-in proxy obtains no certificates', async () => {
  const { answered, checked } = await provenDomain(await app.organization());
  const unsupported = { state: 'UNSUPPORTED', expires_at: null, last_error: null };
  expect(await answered()).toEqual(unsupported);
  expect(await checked()).toEqual(unsupported);
});

test('a domain that was just created awaits its certificate where the proxy is Caddy', async () => {
  const { answered, checked } = await provenDomain(await withCaddy.organization(), withCaddy);
  const pending = { state: 'PENDING', expires_at: null, last_error: null };
  expect(await answered()).toEqual(pending);
  expect(await checked()).toEqual(pending);
});

test('a domain says that the proxy of its cluster obtains no certificates', async () => {
  const { node, answered } = await provenDomain(await app.organization());
  await look(node, NO_ROUTER);
  expect(await answered()).toEqual({ state: 'UNSUPPORTED', expires_at: null, last_error: null });
});

test('a domain tells the state of its certificate, and why the last attempt failed, and metrics tell its end', async () => {
  const { domain, node, answered } = await provenDomain(await app.organization());
  await look(node, proxyWith({ state: 'FAILED', expiresAt: null, lastError: 'http-01: connection refused' }));
  expect(await answered()).toEqual({ state: 'FAILED', expires_at: null, last_error: 'http-01: connection refused' });
  const expiresAt = Date.UTC(2030, 0, 1);
  const metrics = await look(node, proxyWith({ state: 'ISSUED', expiresAt, lastError: null }));
  expect(await answered()).toEqual({ state: 'ISSUED', expires_at: '2030-01-01T00:00:00.000Z', last_error: null });
  expect(await metrics.metrics()).toContain(`{domain="${domain}"} ${expiresAt / 1000}`);
});

test('metrics tell of certificates where work in the background has begun anew in the same process', async () => {
  const { domain, node } = await provenDomain(await app.organization());
  const registry = new Registry();
  const expiresAt = Date.UTC(2031, 0, 1);
  await look(node, proxyWith({ state: 'PENDING', expiresAt: null, lastError: null }), registry);
  await look(node, proxyWith({ state: 'ISSUED', expiresAt, lastError: null }), registry);
  expect(await registry.metrics()).toContain(`{domain="${domain}"} ${expiresAt / 1000}`);
});

test('a domain of which the proxy says what PostgreSQL cannot keep is recorded, and a proxy that hangs keeps no watcher', async () => {
  const { node, answered } = await provenDomain(await app.organization());
  await look(node, proxyWith({ state: 'FAILED', expiresAt: null, lastError: 'answer \0 of the authority' }));
  expect(await answered()).toMatchObject({ state: 'FAILED', last_error: 'answer \uFFFD of the authority' });
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const hanging = { ...NO_ROUTER, certificates: () => (resolve(), new Promise<never>(() => undefined)) };
  const watcher = new CertificateWatcher(app.platform, async () => hanging, node, new Registry());
  const looking = watcher.look();
  await asked;
  await watcher.stop();
  await looking;
});

test('a domain on a cluster of no machine tells what the cluster says, and a cluster that is away keeps no other from it', async () => {
  const { node, domain, answered } = await provenDomain(await app.organization());
  const away = await provenDomain(await app.organization());
  await app.db.updateTable('cluster').set({ node_id: null, watched_by: node }).execute();
  const { id: awayId } = await app.db
    .selectFrom('custom_domain')
    .innerJoin('service', 'service.id', 'custom_domain.service_id')
    .innerJoin('environment', 'environment.id', 'service.environment_id')
    .select('environment.cluster_id as id')
    .where('custom_domain.domain', '=', away.domain)
    .executeTakeFirstOrThrow();
  const certificates = async (hosts: string[]): Promise<CertificateStatus[]> =>
    hosts.map((host) => ({ host, state: 'FAILED', expiresAt: null, lastError: `no order for ${domain}` }));
  const runtimes: ClusterRuntimes = {
    runtimeOf: async ({ id }) => {
      if (id === awayId) throw new RuntimeError('unreachable', 'The cluster does not answer.');
      return { name: 'kubernetes', certificates } as Partial<Runtime> as Runtime;
    },
  };
  const never = () => Promise.reject(new Error('the proxy of the node was asked'));
  await new CertificateWatcher(app.platform, never, node, new Registry(), runtimes).look();
  expect(await answered()).toMatchObject({ state: 'FAILED', last_error: `no order for ${domain}` });
  expect(await away.answered()).toMatchObject({ last_error: null });
});

test('a domain that asks for no certificate tells of none', async () => {
  const admin = await app.organization();
  const { url, id, domain, node, answered } = await provenDomain(admin);
  ok(await admin.put(`${url}/${id}`, { domain, generate_certificate: false }), 200);
  await look(node, NO_ROUTER);
  expect(await answered()).toBeNull();
});
