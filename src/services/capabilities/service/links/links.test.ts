import { describe, expect, test } from 'vitest';
import { shortId } from '#kernel/ids.ts';
import { makeApplication, makeEnvironment, PORTS } from '#services/capabilities/service/links/links.fixture.ts';
import { linksOf } from '#services/capabilities/service/links/links.ts';
import { toPorts } from '#services/ports/ports.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp({ QUARTERDECK_PROXY_DOMAIN: 'apps.example.net', QUARTERDECK_PROXY_PORT: '8123' });

describe('links', () => {
  test('of a service are its public web ports through the proxy and its proven custom domains', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin, await makeEnvironment(admin), 'web', PORTS);
    const domain = `${shortId(id)}.example.com`;
    for (const name of [domain, `unproven.${domain}`])
      ok(await admin.post(`/application/${id}/customDomain`, { domain: name, generate_certificate: true }), 201);
    await app.db.updateTable('custom_domain').set({ proof_state: 'VALIDATED' }).where('domain', '=', domain).execute();
    const host = `app-z${shortId(id)}.apps.example.net`;
    const common = { service_id: id, service_type: 'APPLICATION', external_port: 8123 };
    const { results, pagination } = ok(await admin.get(`/application/${id}/link`), 200);
    expect(results).toEqual([
      { ...common, url: `http://${host}:8123`, internal_port: 3000, is_qovery_domain: true, is_default: true },
      { ...common, url: `http://admin-${host}:8123`, internal_port: 9000, is_qovery_domain: true, is_default: false },
      { ...common, url: `http://${domain}:8123`, internal_port: 3000, is_qovery_domain: false, is_default: true },
    ]);
    expect(pagination.total_count).toBe(3);
  });

  test('are not there for another organization', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { id } = await makeApplication(admin, await makeEnvironment(admin), 'web', PORTS);
    expect((await stranger.get(`/application/${id}/link`)).status).toBe(404);
    expect((await app.anonymous('GET', `/application/${id}/link`)).status).toBe(401);
  });

  test.each([
    ['http on the port of the proxy', '', 8082, 'http://app-z00000000.d.net:8082', 8082],
    ['http without a port on 80', '', 80, 'http://app-z00000000.d.net', 80],
    ['https where TLS ends in front', 'https://d.net', 8082, 'https://app-z00000000.d.net', 443],
    ['https on another port', 'https://x:8443', 8082, 'https://app-z00000000.d.net:8443', 8443],
  ])('are %s', (_what, proxyPublicUrl, proxyPort, url, port) => {
    const service = { id: '00000000-0000-4000-8000-000000000000', kind: 'APPLICATION', spec: {} };
    const ports = toPorts([{ internal_port: 80, publicly_accessible: true }], []);
    const [link] = linksOf({ proxyDomain: 'd.net', proxyPort, proxyPublicUrl }, service, ports, []);
    expect(link).toMatchObject({ url, external_port: port });
  });
});
