import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId, shortId } from '#kernel/ids.ts';
import { startDnsServer, type DnsServer } from '#services/capabilities/service/custom-domains/dns-server.fixture.ts';
import { createResolver, type HostResolver } from '#platform/dns/resolver.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

let dns: DnsServer;
let resolver: HostResolver;
beforeAll(async () => {
  dns = await startDnsServer();
  resolver = createResolver([dns.address], 200);
});
afterAll(() => dns.close());

const app = useApp(
  {
    QUARTERDECK_PROXY_DOMAIN: 'apps.example.net',
    QUARTERDECK_BASE_URL: 'https://console.example.net',
    QUARTERDECK_RESERVED_DOMAINS: 'corp.example.net, id.example.net',
  },
  {
    resolver: {
      cname: (host) => resolver.cname(host),
      addresses: (host) => resolver.addresses(host),
      txt: (host) => resolver.txt(host),
    },
  },
);

async function makeApplication(admin: Actor, name = 'web') {
  const project = ok(await admin.post(`/organization/${admin.organizationId}/project`, { name: newId() }), 201);
  const environment = ok(await admin.post(`/project/${project.id}/environment`, { name: 'dev' }), 201);
  const body = { name, git_repository: { url: 'https://github.com/acme/shop.git', branch: 'main' } };
  return ok(await admin.post(`/environment/${environment.id}/application`, body), 201);
}

const versionOf = async (id: string) =>
  (await app.db.selectFrom('service').select('version').where('id', '=', id).executeTakeFirstOrThrow()).version;

let count = 0;
const freshDomain = () => `shop${++count}.example.com`;

describe('a custom domain', () => {
  test('is created, listed, edited and removed, and each write moves the service and is told in an event', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const url = `/application/${id}/customDomain`;
    const [first, second] = [freshDomain(), freshDomain()];
    const created = ok(await admin.post(url, { domain: ` ${first.toUpperCase()}. `, generate_certificate: true }), 201);
    expect(created).toMatchObject({
      domain: first,
      generate_certificate: true,
      use_cdn: false,
      validation_domain: `app-z${shortId(id)}.apps.example.net`,
      validation_record: {
        type: 'TXT',
        name: `_quarterdeck-challenge.${first}`,
        value: expect.stringMatching(/^quarterdeck-domain=[0-9a-f]{40}$/),
      },
      validation_state: 'PENDING',
      validation_error: null,
      validation_checked_at: null,
      status: 'VALIDATION_PENDING',
    });
    expect(ok(await admin.get(url), 200).results).toEqual([created]);
    const edited = ok(
      await admin.put(`${url}/${created.id}`, { domain: second, generate_certificate: false, use_cdn: true }),
      200,
    );
    expect(edited).toMatchObject({ id: created.id, domain: second, generate_certificate: false, use_cdn: true });
    expect(edited.validation_record.name).toBe(`_quarterdeck-challenge.${second}`);
    expect(edited.validation_record.value).not.toBe(created.validation_record.value);
    expect((await admin.delete(`${url}/${created.id}`)).status).toBe(204);
    expect(ok(await admin.get(url), 200).results).toEqual([]);
    expect(await versionOf(id)).toBe(4);
    const events = await app.db
      .selectFrom('audit_event')
      .selectAll()
      .where('target_id', '=', id)
      .where('sub_target_type', '=', 'CUSTOM_DOMAIN')
      .orderBy('id')
      .execute();
    expect(events.map((event) => [event.event_type, event.original_change?.domain, event.change?.domain])).toEqual([
      ['CREATE', undefined, first],
      ['UPDATE', first, second],
      ['DELETE', second, undefined],
    ]);
  });

  test('is claimed once by an organization: 409 names the service that has it', async () => {
    const admin = await app.organization();
    const [mine, other] = [await makeApplication(admin), await makeApplication(admin)];
    const domain = freshDomain();
    const body = { domain, generate_certificate: true };
    ok(await admin.post(`/application/${mine.id}/customDomain`, body), 201);
    expect(ok(await admin.post(`/application/${mine.id}/customDomain`, body), 409).message).toContain('already');
    expect(ok(await admin.post(`/application/${other.id}/customDomain`, body), 409).message).toContain(mine.id);
    const second = ok(
      await admin.post(`/application/${other.id}/customDomain`, { ...body, domain: freshDomain() }),
      201,
    );
    expect((await admin.put(`/application/${other.id}/customDomain/${second.id}`, body)).status).toBe(409);
  });

  test('is had by one of two services of an organization that ask for it at the same time', async () => {
    const admin = await app.organization();
    const [mine, other] = [await makeApplication(admin), await makeApplication(admin)];
    const body = { domain: freshDomain(), generate_certificate: true };
    const answers = await Promise.all(
      [mine, other].map(({ id }) => admin.post(`/application/${id}/customDomain`, body)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  test('without proof keeps no other organization from claiming it, each with a record of its own', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const [mine, foreign] = [await makeApplication(admin), await makeApplication(stranger)];
    const body = { domain: freshDomain(), generate_certificate: true };
    const first = ok(await admin.post(`/application/${mine.id}/customDomain`, body), 201);
    const second = ok(await stranger.post(`/application/${foreign.id}/customDomain`, body), 201);
    expect(second.validation_record.name).toBe(first.validation_record.name);
    expect(second.validation_record.value).not.toBe(first.validation_record.value);
  });

  test('that an organization gives another of its services keeps its record', async () => {
    const admin = await app.organization();
    const [mine, other] = [await makeApplication(admin), await makeApplication(admin)];
    const body = { domain: freshDomain(), generate_certificate: true };
    const first = ok(await admin.post(`/application/${mine.id}/customDomain`, body), 201);
    ok(await admin.delete(`/application/${mine.id}/customDomain/${first.id}`), 204);
    const second = ok(await admin.post(`/application/${other.id}/customDomain`, body), 201);
    expect(second.validation_record).toEqual(first.validation_record);
  });

  test.each([
    ['a wildcard', '*.example.com'],
    ['a URL', 'https://example.com'],
    ['a port', 'example.com:8080'],
    ['a path', 'example.com/x'],
    ['an address', '10.1.2.3'],
    ['a single label', 'localhost'],
    ['an empty label', 'a..example.com'],
    ['a label of 64 characters', `${'a'.repeat(64)}.com`],
    ['an underscore', 'a_b.example.com'],
    ['the domain of the proxy', 'apps.example.net'],
    ['a generated name of another service', 'app-z1a2b3c4d.apps.example.net'],
    ['a generated name of another port', 'admin-app-z1a2b3c4d.apps.example.net'],
    ['any other name below the domain of the proxy', 'login.apps.example.net'],
    ['a name below localhost', 'login.localhost'],
    ['the host of the console', 'console.example.net'],
    ['a domain that the operator keeps', 'corp.example.net'],
    ['a name below a domain that the operator keeps', 'login.ID.example.net'],
    ['a name too long for its record', `${'a.'.repeat(114)}example.com`],
  ])('that is %s is refused: %s', async (_what, domain) => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const answer = await admin.post(`/application/${id}/customDomain`, { domain, generate_certificate: true });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ field: 'domain' }] } });
  });

  test('in an international spelling is kept in the form that the DNS knows', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const created = ok(
      await admin.post(`/application/${id}/customDomain`, { domain: 'Bücher.example', generate_certificate: false }),
      201,
    );
    expect(created.domain).toBe('xn--bcher-kva.example');
  });

  test('is changed by nobody of another organization, by no reader, nor through another service', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const [mine, other] = [await makeApplication(admin), await makeApplication(admin)];
    const body = { domain: freshDomain(), generate_certificate: true };
    const { id } = ok(await admin.post(`/application/${mine.id}/customDomain`, body), 201);
    const one = `/application/${mine.id}/customDomain/${id}`;
    const reader = await admin.withScope('READ');
    expect((await stranger.put(one, body)).status).toBe(404);
    expect((await stranger.get(`/application/${mine.id}/customDomain`)).status).toBe(404);
    expect((await reader.delete(one)).status).toBe(403);
    ok(await reader.get(`/application/${mine.id}/customDomain`), 200);
    expect((await admin.put(`/application/${other.id}/customDomain/${id}`, body)).status).toBe(404);
    expect((await admin.delete(`/application/${mine.id}/customDomain/${newId()}`)).status).toBe(404);
    expect((await admin.post(`/application/${mine.id}/customDomain`, { domain: 'x.y' })).body.errors).toEqual([
      { field: 'generate_certificate', message: 'is required' },
    ]);
  });

  test('is not given to a service that is being deleted', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    await app.db.updateTable('service').set({ deleting: true }).where('id', '=', id).execute();
    const body = { domain: freshDomain(), generate_certificate: true };
    expect((await admin.post(`/application/${id}/customDomain`, body)).status).toBe(409);
  });
});

describe('the check of custom domains', () => {
  test('tells what the DNS says of each', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const target = `app-z${shortId(id)}.apps.example.net`;
    const known = {
      'alias.check.test': { cname: target },
      'far.check.test': { cname: 'near.check.test' },
      'near.check.test': { cname: target },
      [target]: { addresses: ['203.0.113.7', '2001:db8::7'] },
      'apex.check.test': { addresses: ['203.0.113.7'] },
      'wrong.check.test': { addresses: ['198.51.100.1'] },
      'half.check.test': { addresses: ['203.0.113.7', '198.51.100.1'] },
      'elsewhere.check.test': { cname: 'other.check.test' },
      'loop.check.test': { cname: 'pool.check.test' },
      'pool.check.test': { cname: 'loop.check.test' },
      'cdn.check.test': { addresses: ['198.51.100.9'] },
      'dead.check.test': 'silent',
      'broken.check.test': 'broken',
    } as const;
    for (const [name, record] of Object.entries(known)) dns.records.set(name, record as never);
    const wanted = {
      'alias.check.test': 'MATCHES_LOAD_BALANCER_HOST',
      'far.check.test': 'MATCHES_LOAD_BALANCER_HOST',
      'apex.check.test': 'RESOLVES_TO_IP',
      'wrong.check.test': 'DOMAIN_LINKED_TO_WRONG_HOST',
      'half.check.test': 'DOMAIN_LINKED_TO_WRONG_HOST',
      'elsewhere.check.test': 'DOMAIN_LINKED_TO_WRONG_HOST',
      'loop.check.test': 'DOMAIN_LINKED_TO_WRONG_HOST',
      'cdn.check.test': 'RESOLVES_TO_IP',
      'absent.check.test': 'DOMAIN_NOT_CONFIGURED',
      'dead.check.test': 'GENERIC_FAILURE',
      'broken.check.test': 'GENERIC_FAILURE',
    };
    for (const domain of Object.keys(wanted)) {
      const body = { domain, generate_certificate: true, use_cdn: domain.startsWith('cdn') };
      const { validation_record } = ok(await admin.post(`/application/${id}/customDomain`, body), 201);
      if (domain !== 'apex.check.test') dns.records.set(validation_record.name, { txt: [validation_record.value] });
    }
    const { results } = ok(await admin.get(`/application/${id}/checkCustomDomain`), 200);
    expect(
      Object.fromEntries(results.map((one: { domain_name: string; status: string }) => [one.domain_name, one.status])),
    ).toEqual(wanted);
    const detailsOf = (domain: string) =>
      results.find((one: { domain_name: string }) => one.domain_name === domain).error_details;
    expect(detailsOf('alias.check.test')).toBeNull();
    expect(detailsOf('apex.check.test')).toMatch(
      /^_quarterdeck-challenge\.apex\.check\.test has no TXT record: create one with the value quarterdeck-domain=/,
    );
    expect(detailsOf('wrong.check.test')).toBe(`wrong.check.test leads to 198.51.100.1: make it a CNAME of ${target}.`);
    expect(detailsOf('absent.check.test')).toContain(target);
  });

  test('of one domain ends its pending status once it is proven and leads here, and a DNS without an answer changes nothing', async () => {
    const admin = await app.organization();
    const { id } = await makeApplication(admin);
    const domain = freshDomain();
    const created = ok(
      await admin.post(`/application/${id}/customDomain`, { domain, generate_certificate: true }),
      201,
    );
    const { name, value } = created.validation_record;
    const look = async () =>
      ok(await admin.get(`/application/${id}/customDomain/${created.id}/status`), 200) as Record<string, unknown>;
    const pending = { status: 'VALIDATION_PENDING', validation_state: 'PENDING' };
    expect(await look()).toMatchObject({ ...pending, validation_error: expect.stringContaining(value) });
    dns.records.set(domain, { cname: created.validation_domain });
    dns.records.set(name, { txt: ['quarterdeck-domain=0', 'something else'] });
    expect(await look()).toMatchObject({ ...pending, validation_error: expect.stringContaining(value) });
    dns.records.set(name, { txt: ['something else', value] });
    const settled = { validation_state: 'VALIDATED', validation_error: null };
    expect(await look()).toMatchObject(settled);
    expect(await look()).not.toHaveProperty('status');
    const events = ok(await admin.get(`/organization/${admin.organizationId}/events?eventType=UPDATE`), 200).events;
    expect(events).toMatchObject([
      { target_id: id, sub_target_type: 'CUSTOM_DOMAIN', origin: 'QOVERY_INTERNAL', triggered_by: 'quarterdeck' },
    ]);
    for (const record of [domain, name]) dns.records.set(record, 'silent');
    expect(await look()).toMatchObject({ validation_state: 'VALIDATED' });
    expect(await look()).not.toHaveProperty('status');
    dns.records.delete(domain);
    expect(await look()).toMatchObject({ status: 'VALIDATION_PENDING', validation_state: 'VALIDATED' });
    // Once for the claim, once for its proof.
    expect(await versionOf(id)).toBe(3);
  });

  test('of a name under localhost needs no DNS', async () => {
    const local = createResolver(['127.0.0.1:1'], 50);
    expect(await local.cname('shop.localhost')).toBeUndefined();
    expect(await local.txt('shop.localhost')).toEqual([]);
    expect(await local.addresses('shop.localhost')).toEqual(['127.0.0.1', '::1']);
  });
});
