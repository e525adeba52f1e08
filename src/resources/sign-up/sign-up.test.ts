import { describe, expect, test } from 'vitest';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

const ANSWERS = {
  first_name: 'Ada',
  last_name: 'L',
  user_email: 'ada@a.example',
  type_of_use: 'WORK',
  qovery_usage: 'everything',
  company_size: '11-50',
  user_role: null,
};

describe('a sign-up', () => {
  test('is not there at first, then what was said last', async () => {
    const admin = await app.organization();
    ok(await admin.get('/admin/userSignUp'), 404);
    const said = ok(await admin.post('/admin/userSignUp', ANSWERS), 200);
    expect(said).toMatchObject(ANSWERS);
    const again = ok(await admin.post('/admin/userSignUp', { ...ANSWERS, current_step: 'end' }), 200);
    expect(again).toMatchObject({ id: said.id, created_at: said.created_at, current_step: 'end' });
    expect(ok(await admin.get('/admin/userSignUp'), 200)).toEqual(again);
    ok(await (await app.organization()).get('/admin/userSignUp'), 404);
  });

  test('is refused without what it asks for', async () => {
    const admin = await app.organization();
    const { errors } = ok(
      await admin.post('/admin/userSignUp', { ...ANSWERS, type_of_use: 'FUN', first_name: undefined }),
      400,
    );
    expect(errors.map((error: { field: string }) => error.field)).toEqual(['first_name', 'type_of_use']);
  });
});

describe('the onboarding', () => {
  const urlOf = (admin: { organizationId: string }) => `/organization/${admin.organizationId}/onboarding`;

  test('is in progress at first; nothing said changes nothing, and each part changes alone', async () => {
    const admin = await app.organization();
    const first = { use_cases: '', status: 'IN_PROGRESS' };
    expect(ok(await admin.get(urlOf(admin)), 200)).toEqual(first);
    expect(ok(await admin.post(urlOf(admin)), 200)).toEqual(first);
    expect(ok(await admin.post(urlOf(admin), {}), 200)).toEqual(first);
    ok(await admin.post(urlOf(admin), { use_cases: 'a,b' }), 200);
    ok(await admin.post(urlOf(admin), { status: 'DISMISSED' }), 200);
    expect(ok(await admin.get(urlOf(admin)), 200)).toEqual({ use_cases: 'a,b', status: 'DISMISSED' });
    const events = await app.db
      .selectFrom('audit_event')
      .select('event_type')
      .where('target_id', '=', admin.userId)
      .execute();
    expect(events).toHaveLength(2);
  });

  test("is the person's: a token of theirs sees the same, another person has their own", async () => {
    const [admin, other] = [await app.organization(), await app.organization()];
    ok(await admin.post(urlOf(admin), { status: 'COMPLETED' }), 200);
    expect(ok(await (await admin.withScope('READ')).get(urlOf(admin)), 200).status).toBe('COMPLETED');
    expect(ok(await other.get(urlOf(other)), 200).status).toBe('IN_PROGRESS');
    ok(await other.get(urlOf(admin)), 404);
    expect(ok(await admin.post(urlOf(admin), { status: 'DONE' }), 400).errors[0].field).toBe('status');
  });
});
