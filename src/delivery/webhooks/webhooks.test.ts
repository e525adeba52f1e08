import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook as Verifier } from 'standardwebhooks';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { inTransaction } from '#platform/context.ts';
import { sql } from '#platform/database/index.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { ok } from '#test/harness/app.ts';
import { WEBHOOK_REPORT } from '#delivery/webhooks/index.ts';
import { event, publish, useWebhooks } from '#delivery/webhooks/webhooks.fixture.ts';

const { app, receiver, worker, say, register, attempts, states, settled, http, servers } = useWebhooks();

describe('a webhook is called', () => {
  test('with the event and who it is about, and the call can be read afterwards', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url);
    const said = event(admin);
    await say(admin, said);
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(calls).toHaveLength(1);
    expect(calls[0]!.body).toEqual({
      event_type: 'DEPLOYMENT_SUCCEEDED',
      payload: {
        application_id: said.service.id,
        service_id: said.service.id,
        service_type: 'APPLICATION',
        service_name: 'front <end>',
        organization_id: admin.organizationId,
        organization_name: 'Ours',
        project_id: said.project.id,
        project_name: 'Shop',
        environment_id: said.environment.id,
        environment_name: 'live',
        environment_mode: 'PRODUCTION',
        deployment_request_id: said.deployment_request_id,
        status: 'DEPLOYED',
        generation: 4,
        sequence: 9,
      },
    });
    expect(calls[0]!.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': expect.any(String) });
    expect(calls[0]!.headers['webhook-signature']).toBeUndefined();
    expect(await attempts(admin, webhook.id)).toMatchObject([
      {
        matched_event: 'DEPLOYMENT_SUCCESSFUL',
        target_url_used: url,
        request: calls[0]!.body,
        target_response_status_code: 200,
        target_response_body: 'answer 1',
        delivery_id: calls[0]!.headers['webhook-id'],
        attempt: 1,
      },
    ]);
  });

  test.each([
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
    ['an ordinary pässword', new Verifier(Buffer.from('an ordinary pässword'), { format: 'raw' })],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', new Verifier('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', { format: 'raw' })],
    ['whsec_!', new Verifier('whsec_!', { format: 'raw' })],
  ])(
    'with a signature of the secret %s that the Standard Webhooks library verifies',
    async (target_secret, verifier) => {
      const admin = await app.organization();
      const { calls, url } = await receiver();
      const webhook = await register(admin, url, { target_secret });
      await say(admin, event(admin));
      worker();
      await settled(webhook.id, 'DELIVERED');
      const { headers, text, body } = calls[0]!;
      expect(verifier.verify(text, headers as Record<string, string>)).toEqual(body);
      expect(() => verifier.verify(`${text} `, headers as Record<string, string>)).toThrow();
    },
  );

  test('so that nobody can replay it: id, time and body are signed together, and an old time is not taken', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => (number === 1 ? 500 : 200));
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const webhook = await register(admin, url, { target_secret: secret });
    await say(admin, event(admin));
    // A second later, so that the second attempt has another time.
    worker({ schedule: [1100, 1, 1, 1, 1, 1] });
    await settled(webhook.id, 'DELIVERED');
    const verifier = new Verifier(secret);
    const [first, second] = calls.map(({ headers }) => headers as Record<string, string>);
    const { text } = calls[0]!;
    for (const headers of [first!, second!]) verifier.verify(text, headers);
    expect(second!['webhook-timestamp']).not.toBe(first!['webhook-timestamp']);
    const forged = [
      { ...first!, 'webhook-timestamp': second!['webhook-timestamp']! },
      { ...first!, 'webhook-id': `msg_${newId()}` },
      { ...first!, 'webhook-signature': 'v1,' },
    ];
    for (const headers of forged) expect(() => verifier.verify(text, headers)).toThrow();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 6 * 60_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(() => verifier.verify(text, first!)).toThrow(/too old/);
  });

  test('with a text for people when it is of the kind SLACK, without markup from names', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url, { kind: 'SLACK' });
    await say(admin, event(admin));
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(calls[0]!.body).toEqual({
      text: 'Deployment of *front &lt;end&gt;* (Ours / Shop / live) has succeeded: DEPLOYED',
    });
  });

  test('only for events, projects and modes that it asked for, of its own organization, and while it is on', async () => {
    const [admin, stranger] = [await app.organization(), await app.organization()];
    const { calls, url } = await receiver();
    const only = await register(admin, `${url}?only`, {
      events: ['DEPLOYMENT_FAILURE'],
      project_names_filter: ['shop'],
      environment_types_filter: ['PRODUCTION'],
    });
    const all = await register(admin, `${url}?all`);
    const off = await register(admin, `${url}?off`, { enabled: false });
    const theirs = await register(stranger, `${url}?theirs`);
    const failed = event(admin, { type: 'DEPLOYMENT_FAILURE' });
    await say(
      admin,
      failed,
      event(admin),
      { ...failed, project: { id: newId(), name: 'Shopping' } },
      { ...failed, environment: { ...failed.environment, mode: 'STAGING' } },
    );
    worker();
    await settled(only.id, 'DELIVERED');
    await settled(all.id, ...Array(4).fill('DELIVERED'));
    expect([await states(off.id), await states(theirs.id)]).toEqual([[], []]);
    expect(calls).toHaveLength(5);
  });

  test('once the transaction of the event is committed, and never for one that is rolled back', async () => {
    const admin = await app.organization();
    const { url } = await receiver();
    const webhook = await register(admin, url);
    const failing = inTransaction(app.context, async (context) => {
      await publish(context, admin.organizationId, event(admin));
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const said = event(admin);
    await say(admin, said);
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect((await attempts(admin, webhook.id))[0].request.payload.service_id).toBe(said.service.id);
  });
});

describe('a call that fails', () => {
  test('is made again under the same id with the same body until it is answered with 2xx, each attempt on record', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver((_call, number) => [500, 404, 204][number - 1]!);
    const webhook = await register(admin, url, { target_secret: 's' });
    await say(admin, event(admin));
    worker();
    await settled(webhook.id, 'DELIVERED');
    expect(new Set(calls.map((call) => `${call.headers['webhook-id']} ${call.text}`)).size).toBe(1);
    expect((await attempts(admin, webhook.id)).map((one) => [one.attempt, one.target_response_status_code])).toEqual([
      [3, 204],
      [2, 404],
      [1, 500],
    ]);
  });

  test('is given up after the seventh attempt, and made again when somebody asks for it', async () => {
    const admin = await app.organization();
    let broken = true;
    const { calls, url } = await receiver(() => (broken ? 503 : 200));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const delivery = worker();
    await settled(webhook.id, 'FAILED');
    expect(calls).toHaveLength(7);
    expect((await WEBHOOK_REPORT.status(app.db)).lastFailure?.error).toBe('The receiver answered 503.');
    broken = false;
    const [last] = await attempts(admin, webhook.id);
    ok(await admin.post(`/organization/${admin.organizationId}/webhook/${webhook.id}/event/${last.id}/resend`), 200);
    delivery.nudge();
    await settled(webhook.id, 'DELIVERED');
    expect(calls).toHaveLength(8);
    expect(new Set(calls.map((call) => call.headers['webhook-id'])).size).toBe(1);
    expect((await attempts(admin, webhook.id))[0]).toMatchObject({ attempt: 8, target_response_status_code: 200 });
  });

  test('is made again after 5 s, 30 s, 2 min, 10 min, 1 h and 6 h', async () => {
    const admin = await app.organization();
    const { url } = await receiver(() => 500);
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    const delivery = worker({}, http, {});
    const seconds: number[] = [];
    for (let number = 1; number <= 6; number++) {
      const row = await vi.waitFor(
        () =>
          app.db
            .selectFrom('webhook_delivery')
            .select(sql<number>`extract(epoch from next_attempt_at - now())::float8`.as('seconds'))
            .where('webhook_id', '=', webhook.id)
            .where('attempts', '=', number)
            .where('claim_token', 'is', null)
            .executeTakeFirstOrThrow(),
        { timeout: 40_000 },
      );
      seconds.push(Math.round(row.seconds));
      await app.db
        .updateTable('webhook_delivery')
        .set({ next_attempt_at: new Date(0) })
        .where('webhook_id', '=', webhook.id)
        .execute();
      delivery.nudge();
    }
    await settled(webhook.id, 'FAILED');
    expect(seconds).toEqual([5, 30, 120, 600, 3600, 21600]);
  });

  test('because nobody answers in time, or listens at all, is kept as code 0 with the reason', async () => {
    const admin = await app.organization();
    const slow = await receiver(() => 'hold');
    const closed = await receiver();
    await new Promise((resolve) => servers.pop()!.close(resolve));
    const [first, second] = [await register(admin, slow.url), await register(admin, closed.url)];
    await say(admin, event(admin));
    worker({ timeout: 100, schedule: [] });
    await settled(first.id, 'FAILED');
    await settled(second.id, 'FAILED');
    expect(await attempts(admin, first.id)).toMatchObject([
      { target_response_status_code: 0, target_response_body: expect.stringContaining('within 100 ms') },
    ]);
    expect(await attempts(admin, second.id)).toMatchObject([
      { target_response_status_code: 0, target_response_body: expect.stringContaining('ECONNREFUSED') },
    ]);
  });

  test('is answered with a redirect, which is not followed', async () => {
    const admin = await app.organization();
    const inner = await receiver();
    const { url } = await receiver(() => ({ status: 307, headers: { location: inner.url } }));
    const webhook = await register(admin, url);
    await say(admin, event(admin));
    worker({ schedule: [] });
    await settled(webhook.id, 'FAILED');
    expect(await attempts(admin, webhook.id)).toMatchObject([{ target_response_status_code: 307 }]);
    expect(inner.calls).toEqual([]);
  });

  test('goes to a name that has come to mean a private address, and is refused at the connection', async () => {
    const admin = await app.organization();
    const { calls, url } = await receiver();
    const webhook = await register(admin, url.replace('127.0.0.1', 'rebind.example.org'));
    await say(admin, event(admin));
    const client = createHttpClient({
      allowedPrivateAddresses: [],
      lookup: async () => [{ address: '127.0.0.1', family: 4 }],
    });
    worker({ schedule: [] }, client);
    await settled(webhook.id, 'FAILED');
    expect(await attempts(admin, webhook.id)).toMatchObject([
      {
        target_response_status_code: 0,
        target_response_body: expect.stringMatching(/^rebind\.example\.org leads to a private/),
      },
    ]);
    expect(calls).toEqual([]);
  });

  test('has an answer that PostgreSQL cannot hold or that is long, which is kept as far as it goes', async () => {
    const admin = await app.organization();
    const server = createServer(
      (_request, response) =>
        void response
          .writeHead(400)
          .end(Buffer.concat([Buffer.from('a\0b\xff', 'latin1'), Buffer.alloc(100_000, 'x')])),
    );
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const webhook = await register(admin, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await say(admin, event(admin));
    worker({ schedule: [] });
    await settled(webhook.id, 'FAILED');
    const [kept] = await attempts(admin, webhook.id);
    expect(kept.target_response_body).toMatch(/^a\uFFFDb\uFFFDx+$/);
    expect(kept.target_response_body).toHaveLength(16 * 1024);
  });
});
