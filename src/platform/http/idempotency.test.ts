import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { pino } from 'pino';
import { conflict } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { defineRoute } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { createServer } from '#platform/http/server.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { useApp, type Actor } from '#test/harness/app.ts';

const app = useApp();
let admin: Actor;
beforeAll(async () => void (admin = await app.organization()));

test.each([true, false])(
  'a key of a request that failed can be used again (in a transaction: %s)',
  async (transaction) => {
    let calls = 0;
    const route = defineRoute({
      id: 'attempt',
      method: 'POST',
      path: '/organization/{organizationId}/attempt',
      tag: 'Test',
      summary: 'Test',
      description: 'Test',
      target: organizationTarget,
      action: 'organization.read',
      transaction,
      answer: { status: 201, body: Type.Object({ calls: Type.Integer() }) },
      handler: () => {
        if (++calls === 1) throw conflict('Not yet.');
        return { calls };
      },
    });
    const server = createServer({
      platform: app.platform,
      sessions: null,
      limiter: new RateLimiter(app.db, 0),
      routes: [route],
      log: pino({ level: 'silent' }),
    });
    onTestFinished(() => server.close());
    const headers = { authorization: `Token ${admin.token}`, 'idempotency-key': newId() };
    const attempt = async () => {
      const answer = await server.inject({
        method: 'POST',
        url: `/organization/${admin.organizationId}/attempt`,
        headers,
      });
      return [answer.statusCode, answer.json().message ?? answer.json().calls];
    };
    expect([await attempt(), await attempt(), await attempt()]).toEqual([
      [409, 'Not yet.'],
      [201, 2],
      [201, 2],
    ]);
  },
);
