import { afterAll, describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { checkDueProofs, unrouteTakenDomains } from '#services/capabilities/service/custom-domains/tasks.ts';
import { nextProof } from '#services/capabilities/service/custom-domains/proof.ts';
import { startDnsServer } from '#services/capabilities/service/custom-domains/dns-server.fixture.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';
import { sessionsThatWait } from '#test/harness/waiting.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

const dns = await startDnsServer();
afterAll(() => dns.close());
const app = useApp({ QUARTERDECK_PROXY_DOMAIN: 'apps.example.net', QUARTERDECK_DNS_SERVERS: dns.address });
const engine = useEngine(app);

const never = new AbortController().signal;
const checkAll = () => checkDueProofs(app.platform, createResolver([dns.address], 200), never);

interface Claim {
  admin: Actor;
  serviceId: string;
  /** Path of the service. */
  url: string;
  id: string;
  record: { name: string; value: string };
}

async function claim(domain: string, admin?: Actor): Promise<Claim> {
  const actor = admin ?? (await app.organization());
  const { application } = await makeExample(actor);
  const url = `/application/${application.id}`;
  const made = ok(await actor.post(`${url}/customDomain`, { domain, generate_certificate: false }), 201);
  return { admin: actor, serviceId: application.id, url, id: made.id, record: made.validation_record };
}

const stateOf = async ({ admin, url, id }: Claim) =>
  ok(await admin.get(`${url}/customDomain`), 200).results.find((one: any) => one.id === id);
const deploy = async ({ admin, url }: Claim) => ok(await admin.post(`${url}/deploy?wait=40`, {}), 200);
const hostsOf = ({ serviceId }: Claim) => engine.router.services.get(serviceId)?.routes.map(({ host }) => host);
const ageOf = (one: Claim, column: 'claimed_at' | 'proof_checked_at' | 'proof_missing_since', hours: number) =>
  app.db
    .updateTable('custom_domain')
    .set({ [column]: new Date(Date.now() - hours * 3_600_000) })
    .where('id', '=', one.id)
    .execute();
const prove = ({ record }: Claim) => dns.records.set(record.name, { txt: [record.value] });
const freshDomain = () => `${newId()}.example.com`;

describe('a custom domain', () => {
  test('is routed by no deployment before its record is there, and by the next one afterwards', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    await deploy(mine);
    expect(hostsOf(mine)).toHaveLength(1);
    expect(hostsOf(mine)).not.toContain(domain);
    expect(ok(await mine.admin.get(`${mine.url}/link`), 200).results).toHaveLength(1);
    const { environment } = ok(await mine.admin.get(mine.url), 200);
    const logs = ok(await mine.admin.get(`/environment/${environment.id}/logs`), 200);
    expect(JSON.stringify(logs)).toContain(`The custom domain ${domain} is not routed, as it is not proven`);

    prove(mine);
    await deploy(mine);
    expect(hostsOf(mine)).toContain(domain);
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'VALIDATED', validation_error: null });
    expect(ok(await mine.admin.get(`${mine.url}/link`), 200).results).toHaveLength(2);
  });

  test('whose record is found after the deployment makes its service OUT_OF_DATE', async () => {
    const mine = await claim(freshDomain());
    await deploy(mine);
    const statusOf = async () => ok(await mine.admin.get(`${mine.url}/status`), 200).service_deployment_status;
    expect(await statusOf()).toBe('UP_TO_DATE');
    prove(mine);
    await ageOf(mine, 'proof_checked_at', 1);
    await checkAll();
    expect(await statusOf()).toBe('OUT_OF_DATE');
    await deploy(mine);
    expect(await statusOf()).toBe('UP_TO_DATE');
  });

  test('of another organization is neither routed nor taken while its record is there', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    prove(mine);
    await deploy(mine);
    const theirs = await claim(domain);
    await deploy(theirs);
    expect(hostsOf(theirs)).not.toContain(domain);
    dns.records.set(mine.record.name, { txt: [mine.record.value, theirs.record.value] });
    await deploy(theirs);
    expect(hostsOf(theirs)).not.toContain(domain);
    expect(hostsOf(mine)).toContain(domain);
    const state = await stateOf(theirs);
    expect(state).toMatchObject({
      validation_state: 'PENDING',
      validation_error: expect.stringContaining('Another organization has proven'),
    });
    expect(JSON.stringify(state)).not.toContain(mine.record.value);
    expect(JSON.stringify(state)).not.toContain(mine.admin.organizationId);
  });

  test('goes to the organization whose record replaces the former one: the former service gives it up', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    prove(mine);
    await deploy(mine);
    const theirs = await claim(domain);
    prove(theirs);
    await checkAll();
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'LOST' });
    expect(await stateOf(theirs)).toMatchObject({ validation_state: 'VALIDATED' });
    await unrouteTakenDomains(app.platform, never);
    await expect.poll(() => hostsOf(mine)).not.toContain(domain);
    await deploy(theirs);
    expect(hostsOf(theirs)).toContain(domain);
    // Nothing is left to give up.
    await unrouteTakenDomains(app.platform, never);
    const { results } = ok(await mine.admin.get(`${mine.url}/deploymentHistory`), 200);
    expect(results).toHaveLength(2);
  });

  test('that a failed deployment dropped keeps its route, and is given up to another organization all the same', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    prove(mine);
    await deploy(mine);
    ok(await mine.admin.delete(`${mine.url}/customDomain/${mine.id}`), 204);
    const applied = engine.runtime.calls.filter(({ verb }) => verb === 'submit').length;
    engine.runtime.faults = { failAt: { submit: applied + 1 } };
    expect((await deploy(mine)).state).toBe('DEPLOYMENT_ERROR');
    expect(hostsOf(mine)).toContain(domain);
    const theirs = await claim(domain);
    prove(theirs);
    await checkAll();
    expect(await stateOf(theirs)).toMatchObject({ validation_state: 'VALIDATED' });
    await unrouteTakenDomains(app.platform, never);
    await expect.poll(() => hostsOf(mine)).not.toContain(domain);
    const recorded = app.db.selectFrom('routed_domain').select('domain').where('service_id', '=', mine.serviceId);
    await expect.poll(() => recorded.execute()).toEqual([]);
  });

  test('is proven for one of two organizations that are looked up at the same time', async () => {
    const domain = freshDomain();
    const [one, other] = [await claim(domain), await claim(domain)];
    dns.records.set(one.record.name, { txt: [one.record.value, other.record.value] });
    await checkAll();
    const states = [await stateOf(one), await stateOf(other)].map((state) => state.validation_state);
    expect(states.sort()).toEqual(['PENDING', 'VALIDATED']);
  });

  test('whose record is gone stays routed for a grace time, and is routed by no later deployment', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    prove(mine);
    await deploy(mine);
    dns.records.delete(mine.record.name);
    await ageOf(mine, 'proof_checked_at', 7);
    await checkAll();
    expect(await stateOf(mine)).toMatchObject({
      validation_state: 'VALIDATED',
      validation_error: expect.stringContaining(mine.record.value),
    });
    await deploy(mine);
    expect(hostsOf(mine)).toContain(domain);
    await ageOf(mine, 'proof_missing_since', 73);
    await ageOf(mine, 'proof_checked_at', 7);
    await checkAll();
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'LOST' });
    await deploy(mine);
    expect(hostsOf(mine)).not.toContain(domain);
    prove(mine);
    await deploy(mine);
    expect(hostsOf(mine)).toContain(domain);
  });

  test('that is not proven in time is looked up no longer by itself, and by a deployment again', async () => {
    const mine = await claim(freshDomain());
    await ageOf(mine, 'claimed_at', 24 * 7 + 1);
    await checkAll();
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'EXPIRED' });
    prove(mine);
    await checkAll();
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'EXPIRED' });
    await deploy(mine);
    expect(await stateOf(mine)).toMatchObject({ validation_state: 'VALIDATED' });
  });

  test('is warned of in the log where it leads elsewhere, unless the service says that nobody should look', async () => {
    const domain = freshDomain();
    const mine = await claim(domain);
    prove(mine);
    dns.records.set(domain, { addresses: ['203.0.113.9'] });
    const { environment } = ok(await mine.admin.get(mine.url), 200);
    const warnings = async () => {
      await deploy(mine);
      const logs = ok(await mine.admin.get(`/environment/${environment.id}/logs`), 200);
      return JSON.stringify(logs).split(`${domain} leads to 203.0.113.9`).length - 1;
    };
    expect(await warnings()).toBe(1);
    const setting = { 'deployment.custom_domain_check_enabled': false };
    ok(await mine.admin.put(`${mine.url}/advancedSettings`, setting), 200);
    expect(await warnings()).toBe(0);
    expect(hostsOf(mine)).toContain(domain);
  });
});

test('claims of one organization keep no other from being looked up', async () => {
  const crowded = await app.organization();
  const { application } = await makeExample(crowded);
  for (let index = 0; index < 100; index++)
    await app.db
      .insertInto('custom_domain')
      .values({
        id: newId(),
        organization_id: crowded.organizationId,
        service_id: application.id,
        domain: freshDomain(),
        challenge: 'x',
        generate_certificate: false,
      })
      .execute();
  const mine = await claim(freshDomain());
  prove(mine);
  await checkAll();
  expect(await stateOf(mine)).toMatchObject({ validation_state: 'VALIDATED' });
});

test('a claim that cannot be checked keeps no other from being looked up', async () => {
  const [one, other] = [await claim(freshDomain()), await claim(freshDomain())];
  [one, other].forEach(prove);
  const resolver = createResolver([dns.address], 200);
  const failing = {
    ...resolver,
    txt: (name: string) =>
      name === one.record.name ? Promise.reject(new Error('out of sockets')) : resolver.txt(name),
  };
  await checkDueProofs(app.platform, failing, never);
  expect(await stateOf(one)).toMatchObject({ validation_state: 'PENDING' });
  expect(await stateOf(other)).toMatchObject({ validation_state: 'VALIDATED' });
});

test('a taken domain on a locked cluster is given up once that is unlocked', async () => {
  const domain = freshDomain();
  const mine = await claim(domain);
  prove(mine);
  await deploy(mine);
  const theirs = await claim(domain);
  prove(theirs);
  await checkAll();
  const lock = (locked_at: Date | null) =>
    app.db.updateTable('cluster').set({ locked_at }).where('organization_id', '=', mine.admin.organizationId).execute();
  await lock(new Date());
  await unrouteTakenDomains(app.platform, never);
  await lock(null);
  await expect.poll(() => hostsOf(mine)).not.toContain(domain);
});

test('a look at many domains of one service waits for the service with one connection only', async () => {
  const mine = await claim(freshDomain());
  for (let index = 0; index < 20; index++)
    ok(await mine.admin.post(`${mine.url}/customDomain`, { domain: freshDomain(), generate_certificate: false }), 201);
  const looking = await app.db.transaction().execute(async (db) => {
    await db.selectFrom('service').select('id').where('id', '=', mine.serviceId).forUpdate().execute();
    const look = mine.admin.get(`${mine.url}/checkCustomDomain`);
    await expect.poll(() => sessionsThatWait(db)).toBeGreaterThan(0);
    // The other connections of the pool still answer.
    ok(await mine.admin.get('/organization'), 200);
    expect(await sessionsThatWait(db)).toBe(1);
    // In a list, because a promise that is returned would be waited for here, under the lock.
    return [look];
  });
  expect(ok(await looking[0]!, 200).results).toHaveLength(21);
});

test('a DNS without an answer changes no state, however long it lasts', () => {
  const settings = { domainClaimDays: 7, domainGraceHours: 72 };
  const [long, now] = [new Date('2026-01-01T00:00:00Z'), new Date('2026-06-01T00:00:00Z')];
  const silence = { found: null, error: 'The DNS gave no answer.' };
  for (const proof_state of ['PENDING', 'VALIDATED', 'LOST', 'EXPIRED'])
    for (const proof_missing_since of [null, long])
      expect(nextProof({ proof_state, claimed_at: long, proof_missing_since }, silence, now, settings)).toMatchObject({
        proof_state,
        proof_error: silence.error,
      });
});
