import { describe, expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

describe('an account', () => {
  test('is the own one; a token acts for its creator', async () => {
    const admin = await app.organization();
    const account = ok(await admin.get('/account'), 200);
    expect(account).toMatchObject({
      id: admin.userId,
      nickname: 'administrator',
      first_name: 'First',
      last_name: 'Administrator',
      profile_picture_url: '',
      communication_email: '',
    });
    expect(ok(await (await admin.withScope('READ')).get('/account'), 200)).toEqual(account);
  });

  test('takes an address for messages, in an event of the organization', async () => {
    const admin = await app.organization();
    const edited = ok(await admin.put('/account', { communication_email: 'a@b.example' }), 200);
    expect(edited.communication_email).toBe('a@b.example');
    expect(ok(await admin.put('/account', {}), 200)).toEqual(edited);
    expect(ok(await admin.put('/account', { communication_email: 'nonsense' }), 400).errors[0].field).toBe(
      'communication_email',
    );
    const events = await app.db
      .selectFrom('audit_event')
      .select(['event_type', 'target_type', 'change'])
      .where('organization_id', '=', admin.organizationId)
      .where('target_id', '=', admin.userId)
      .execute();
    expect(events).toMatchObject([
      { event_type: 'UPDATE', target_type: 'MEMBERS_AND_ROLES', change: { communication_email: 'a@b.example' } },
    ]);
  });

  test('is nobody without credentials', async () => {
    ok(await app.anonymous('GET', '/account'), 401);
    ok(await app.anonymous('PUT', '/account', {}), 401);
  });
});
