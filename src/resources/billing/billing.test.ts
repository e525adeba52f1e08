import { describe, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const lines: string[] = [];
const app = useApp({ QUARTERDECK_LOG_LEVEL: 'trace' }, {}, undefined, (line) => lines.push(line));

const INFO = {
  first_name: 'Ada',
  last_name: 'L',
  email: 'ada@example.com',
  address: '1 Main Street',
  city: 'Paris',
  zip: '75001',
  country_code: 'FR',
};
const at = ({ organizationId }: Actor, path: string) => `/organization/${organizationId}/${path}`;

describe('billing', () => {
  test('information is stored, answered and audited; optional fields stay when they are left out', async () => {
    const admin = await app.organization();
    const empty = ok(await admin.get(at(admin, 'billingInfo')), 200);
    expect(new Set(Object.values(empty))).toEqual(new Set([null]));
    const stored = ok(await admin.put(at(admin, 'billingInfo'), { ...INFO, company: 'ACME' }), 200);
    expect(stored).toEqual({ ...empty, ...INFO, company: 'ACME' });
    expect(ok(await admin.put(at(admin, 'billingInfo'), { ...INFO, city: 'Lyon' }), 200)).toEqual({
      ...stored,
      city: 'Lyon',
    });
    expect(ok(await admin.get(at(admin, 'billingInfo')), 200).city).toBe('Lyon');
    const events = await app.db
      .selectFrom('audit_event')
      .select(['event_type'])
      .where('organization_id', '=', admin.organizationId)
      .where('sub_target_type', '=', 'BILLING_INFO')
      .execute();
    expect(events).toHaveLength(2);
  });

  test('is changed by administrators of the organization only', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const writer = await admin.withScope('WRITE');
    for (const [method, path, body] of [
      ['put', 'billingInfo', INFO],
      ['post', 'changePlan', { plan: 'TEAM' }],
      ['post', 'creditCode', { code: 'c' }],
    ] as const) {
      expect((await writer[method](at(admin, path), body)).status).toBe(403);
      expect((await stranger[method](at(admin, path), body)).status).toBe(404);
    }
    ok(await writer.get(at(admin, 'billingInfo')), 200);
    expect((await stranger.get(at(admin, 'billingInfo'))).status).toBe(404);
  });

  test('sets the plan that clients show, and nothing where none is named', async () => {
    const admin = await app.organization();
    expect(ok(await admin.post(at(admin, 'changePlan'), { plan: 'BUSINESS' }), 200)).toMatchObject({
      plan: 'BUSINESS',
      organization_plan: { plan: 'BUSINESS' },
    });
    const before = ok(await admin.get(`/organization/${admin.organizationId}`), 200);
    for (const nothing of [undefined, {}])
      expect(ok(await admin.post(at(admin, 'changePlan'), nothing), 200)).toEqual(before);
    expect(ok(await admin.get(`/organization/${admin.organizationId}`), 200)).toEqual(before);
    const told = app.db.selectFrom('audit_event').select('id').where('target_id', '=', admin.organizationId);
    expect(await told.where('event_type', '=', 'UPDATE').execute()).toHaveLength(1);
    expect((await admin.post(at(admin, 'changePlan'), { plan: 'HUGE' })).status).toBe(400);
    expect(ok(await admin.get(at(admin, 'currentCost')), 200)).toMatchObject({ plan: 'BUSINESS', cost: { total: 0 } });
  });

  test('has no invoices, cards or credit, and says why', async () => {
    const admin = await app.organization();
    for (const list of ['invoice', 'creditCard']) expect(ok(await admin.get(at(admin, list)), 200).results).toEqual([]);
    expect((await admin.get(at(admin, `invoice/${newId()}`))).status).toBe(404);
    expect((await admin.delete(at(admin, `creditCard/${newId()}`))).status).toBe(404);
    for (const path of ['creditCode', 'downloadInvoices'])
      expect(ok(await admin.post(at(admin, path)), 400).message).toContain('charges nothing');
    expect(ok(await admin.get(at(admin, 'billingStatus')), 200).is_valid).toBe(true);
    expect(ok(await admin.get(at(admin, 'billingExternalId')), 200)).toEqual({});
  });

  test('refuses a credit card without writing it anywhere', async () => {
    const admin = await app.organization();
    const number = '4242424242424242';
    const card = { number, cvv: '987', expiry_month: 1, expiry_year: 2031 };
    const answer = await admin.post(at(admin, 'creditCard'), card, { 'idempotency-key': newId() });
    expect(ok(answer, 400).message).toContain('stores no cards');
    expect(JSON.stringify([answer.body, ...lines])).not.toContain(number);
  });
});
