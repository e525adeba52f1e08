import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newId, newOrderedId } from '#kernel/ids.ts';
import { readSubscription, SUBSCRIBABLE_EVENTS } from '#resources/webhook/events.ts';
import { ok, useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();

const url = (actor: Actor, rest = '') => `/organization/${actor.organizationId}/webhook${rest}`;
const HOOK = { target_url: 'https://hooks.example.org/x', events: ['DEPLOYMENT_STARTED'], enabled: true };

const eventsOf = (id: string) =>
  app.db.selectFrom('audit_event').selectAll().where('target_id', '=', id).orderBy('id').execute();

/** A delivery with one failed attempt, as the delivery of webhooks leaves it. */
async function givenAttempt(actor: Actor, webhookId: string, change: { claim_token?: string } = {}) {
  const [delivery, attempt] = [newOrderedId(), newOrderedId()];
  const common = { organization_id: actor.organizationId, webhook_id: webhookId, kind: 'STANDARD' };
  await app.db
    .insertInto('webhook_delivery')
    .values({
      ...common,
      id: delivery,
      matched_event: 'DEPLOYMENT_FAILURE',
      body: '{"event_type":"DEPLOYMENT_FAILED","payload":{"status":"DEPLOYMENT_ERROR"}}',
      state: change.claim_token ? 'PENDING' : 'FAILED',
      attempts: 1,
      tries: 7,
      ...change,
    })
    .execute();
  await app.db
    .insertInto('webhook_attempt')
    .values({
      ...common,
      id: attempt,
      delivery_id: delivery,
      number: 1,
      matched_event: 'DEPLOYMENT_FAILURE',
      target_url: 'https://old.example.org/',
      ended_at: new Date(),
      status_code: 500,
      response_body: 'oops',
    })
    .execute();
  return { delivery, attempt };
}

describe('a webhook', () => {
  test('is created with the body of the specification and answered in full', async () => {
    const admin = await app.organization();
    const webhook = ok(
      await admin.post(url(admin), {
        target_url: 'https://hooks.example.org/x',
        events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILED'],
        enabled: true,
      }),
      201,
    );
    expect(webhook).toMatchObject({
      kind: 'STANDARD',
      enabled: true,
      description: '',
      target_secret_set: false,
      events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCESSFUL', 'DEPLOYMENT_FAILURE'],
      subscribed_events: ['DEPLOYMENT_STARTED', 'DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILED'],
      project_names_filter: [],
      environment_types_filter: [],
    });
    expect(ok(await admin.get(url(admin, `/${webhook.id}`)), 200)).toEqual(webhook);
    const list = ok(await admin.get(url(admin)), 200);
    expect(list).toMatchObject({ results: [webhook], pagination: { total_count: 1 } });
  });

  test('never shows its secret, neither in answers nor events nor in clear in the database', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), { ...HOOK, target_secret: 'hush-hush' }), 201);
    expect(webhook.target_secret_set).toBe(true);
    ok(await admin.put(url(admin, `/${webhook.id}`), { ...HOOK, target_secret: 'hush-hush-2' }), 200);
    const row = await app.db.selectFrom('webhook').selectAll().where('id', '=', webhook.id).executeTakeFirstOrThrow();
    const text = JSON.stringify([webhook, await eventsOf(webhook.id), row]) + row.target_secret!.toString('latin1');
    expect(text).not.toContain('hush');
  });

  test('keeps its secret in an edit that leaves it out, and loses it by an empty one', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), { ...HOOK, target_secret: 's' }), 201);
    const path = url(admin, `/${webhook.id}`);
    expect(ok(await admin.put(path, HOOK), 200).target_secret_set).toBe(true);
    expect(ok(await admin.put(path, { ...HOOK, target_secret: '' }), 200).target_secret_set).toBe(false);
  });

  test('is edited, keeps what is left out, and tells it with before and after', async () => {
    const admin = await app.organization();
    const webhook = ok(
      await admin.post(url(admin), {
        ...HOOK,
        kind: 'SLACK',
        description: 'kept',
        project_names_filter: ['shop'],
        environment_types_filter: ['PRODUCTION'],
      }),
      201,
    );
    const edited = ok(
      await admin.put(url(admin, `/${webhook.id}`), {
        target_url: 'https://other.example.org/',
        events: ['DEPLOYMENT_CANCELLED'],
      }),
      200,
    );
    expect(edited).toEqual({
      ...webhook,
      target_url: 'https://other.example.org/',
      events: ['DEPLOYMENT_CANCELLED'],
      subscribed_events: ['DEPLOYMENT_CANCELLED'],
      updated_at: edited.updated_at,
    });
    const events = await eventsOf(webhook.id);
    expect(events.map((event) => [event.event_type, event.target_type])).toEqual([
      ['CREATE', 'WEBHOOK'],
      ['UPDATE', 'WEBHOOK'],
    ]);
    expect(events[1]).toMatchObject({
      original_change: { target_url: HOOK.target_url },
      change: { target_url: 'https://other.example.org/' },
    });
  });

  test('keeps the spelling that was subscribed in when its own answer is sent back', async () => {
    const admin = await app.organization();
    const webhook = ok(
      await admin.post(url(admin), { ...HOOK, events: ['DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILURE'] }),
      201,
    );
    const edited = ok(
      await admin.put(url(admin, `/${webhook.id}`), { ...webhook, events: [...webhook.events, 'DEPLOYMENT_STARTED'] }),
      200,
    );
    expect(edited.subscribed_events).toEqual(['DEPLOYMENT_SUCCEEDED', 'DEPLOYMENT_FAILURE', 'DEPLOYMENT_STARTED']);
  });

  test('is refused with what can never be called, and with every wrong field named', async () => {
    const admin = await app.organization();
    for (const target_url of [
      'http://127.0.0.1/x',
      'http://169.254.169.254/',
      'http://[::1]/',
      'http://0x7f000001/',
      'ftp://example.org',
      'nonsense',
    ])
      expect(await admin.post(url(admin), { ...HOOK, target_url }), target_url).toMatchObject({
        status: 400,
        body: { errors: [{ field: 'target_url' }] },
      });
    expect(await admin.post(url(admin), { target_url: 7, events: ['NOPE'], kind: 'MAIL' })).toMatchObject({
      status: 400,
      body: {
        errors: expect.arrayContaining([
          { field: 'events[0]', message: expect.stringContaining('DEPLOYMENT_SUCCEEDED') },
        ]),
      },
    });
    expect((await admin.post(url(admin), { target_url: HOOK.target_url })).body.message).toBe('events: is required');
    expect((await admin.post(url(admin), { ...HOOK, events: [] })).status).toBe(400);
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    expect((await admin.put(url(admin, `/${webhook.id}`), { ...HOOK, target_url: 'http://10.0.0.1/' })).status).toBe(
      400,
    );
  });

  test('is deleted with its deliveries, and is gone then', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    await givenAttempt(admin, webhook.id);
    ok(await admin.delete(url(admin, `/${webhook.id}`)), 204);
    for (const answer of [
      await admin.get(url(admin, `/${webhook.id}`)),
      await admin.delete(url(admin, `/${webhook.id}`)),
    ])
      expect(answer.status).toBe(404);
    expect((await eventsOf(webhook.id)).at(-1)).toMatchObject({
      event_type: 'DELETE',
      original_change: { id: webhook.id },
    });
  });

  test('is not there for another organization, under its own path nor under the other one', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const { attempt } = await givenAttempt(admin, webhook.id);
    for (const base of [url(admin, `/${webhook.id}`), url(stranger, `/${webhook.id}`)])
      for (const answer of [
        await stranger.get(base),
        await stranger.put(base, HOOK),
        await stranger.delete(base),
        await stranger.get(`${base}/event`),
        await stranger.post(`${base}/event/${attempt}/resend`),
      ])
        expect(answer).toMatchObject({ status: 404, body: { error: 'Not Found' } });
    const own = ok(await stranger.post(url(stranger), HOOK), 201);
    expect((await stranger.post(url(stranger, `/${own.id}/event/${attempt}/resend`))).status).toBe(404);
    expect(ok(await stranger.get(url(stranger)), 200).results).toEqual([own]);
  });

  test('is read with any scope and written with ADMIN only', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const { attempt } = await givenAttempt(admin, webhook.id);
    const path = url(admin, `/${webhook.id}`);
    const writer = await admin.withScope('WRITE');
    const reader = await admin.withScope('READ');
    for (const readable of [url(admin), path, `${path}/event`]) ok(await reader.get(readable), 200);
    for (const answer of [
      await writer.post(url(admin), HOOK),
      await writer.put(path, HOOK),
      await writer.delete(path),
      await writer.post(`${path}/event/${attempt}/resend`),
    ])
      expect(answer.status).toBe(403);
  });
});

describe('the attempts of a webhook', () => {
  test('are listed with what was sent and answered, the newest first, and paged', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const first = await givenAttempt(admin, webhook.id);
    const second = await givenAttempt(admin, webhook.id);
    const list = ok(await admin.get(url(admin, `/${webhook.id}/event`)), 200);
    expect(list.results.map((event: { id: string }) => event.id)).toEqual([second.attempt, first.attempt]);
    expect(list.results[1]).toMatchObject({
      kind: 'STANDARD',
      matched_event: 'DEPLOYMENT_FAILURE',
      target_url_used: 'https://old.example.org/',
      request: { event_type: 'DEPLOYMENT_FAILED', payload: { status: 'DEPLOYMENT_ERROR' } },
      target_response_status_code: 500,
      target_response_body: 'oops',
      delivery_id: first.delivery,
      attempt: 1,
    });
    const page = ok(await admin.get(url(admin, `/${webhook.id}/event?page=2&page_size=1`)), 200);
    expect(page.results.map((event: { id: string }) => event.id)).toEqual([first.attempt]);
    expect(page.pagination).toMatchObject({ total_count: 2, total_pages: 2 });
  });

  test('are sent again under the id of their delivery, with the whole schedule before them', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const { attempt, delivery } = await givenAttempt(admin, webhook.id);
    const answer = ok(await admin.post(url(admin, `/${webhook.id}/event/${attempt}/resend`)), 200);
    expect(answer).toMatchObject({ id: delivery, webhook_id: webhook.id, state: 'PENDING', attempts: 1 });
    const row = await app.db
      .selectFrom('webhook_delivery')
      .selectAll()
      .where('id', '=', delivery)
      .executeTakeFirstOrThrow();
    expect(row).toMatchObject({ state: 'PENDING', tries: 0, attempts: 1 });
  });

  test('are not sent again while one is under way, while the webhook is off, or when there is none', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const path = url(admin, `/${webhook.id}`);
    const busy = await givenAttempt(admin, webhook.id, { claim_token: newId() });
    expect(ok(await admin.post(`${path}/event/${busy.attempt}/resend`), 409).message).toContain('being sent');
    expect((await admin.post(`${path}/event/${newId()}/resend`)).status).toBe(404);
    const { attempt } = await givenAttempt(admin, webhook.id);
    ok(await admin.put(path, { ...HOOK, enabled: false }), 200);
    expect(ok(await admin.post(`${path}/event/${attempt}/resend`), 409).message).toContain('enable it');
  });

  test('that still wait are given up when the webhook is switched off', async () => {
    const admin = await app.organization();
    const webhook = ok(await admin.post(url(admin), HOOK), 201);
    const waiting = await givenAttempt(admin, webhook.id);
    ok(await admin.post(url(admin, `/${webhook.id}/event/${waiting.attempt}/resend`)), 200);
    ok(await admin.put(url(admin, `/${webhook.id}`), { ...HOOK, enabled: false }), 200);
    const row = await app.db
      .selectFrom('webhook_delivery')
      .select('state')
      .where('id', '=', waiting.delivery)
      .executeTakeFirstOrThrow();
    expect(row.state).toBe('CANCELED');
  });
});

test('a subscription names each event once, and sent back as answered it is the same', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...SUBSCRIBABLE_EVENTS), { minLength: 1, maxLength: 12 }), (names) => {
      const first = readSubscription(names as string[]);
      expect(new Set(first.events).size).toBe(first.events.length);
      expect(first.subscribed).toHaveLength(first.events.length);
      expect(readSubscription(first.events, first)).toEqual(first);
      expect(readSubscription(first.subscribed).events).toEqual(first.events);
    }),
  );
});
