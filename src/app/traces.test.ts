import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { createServer as createApi } from '#platform/http/server.ts';
import { createTracer, noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { allRoutes } from '#app/routes.ts';
import { ok, useApp } from '#test/harness/app.ts';
import { makeExample, useEngine } from '#test/harness/engine.ts';

interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  status: { code?: number };
  attributes: Record<string, unknown>;
}

/** A collector that keeps what it is sent, and whether the resource was ours. */
const sent: { path: string; service: unknown; spans: SentSpan[] }[] = [];
let collector: Server;
let tracer: Tracer;
const lazy: Tracer = { start: (...args) => tracer.start(...args), close: () => tracer.close() };

const app = useApp();
useEngine(app, {}, lazy);

beforeAll(async () => {
  collector = createServer(async (request, response) => {
    const chunks = await request.toArray();
    for (const { resource, scopeSpans } of JSON.parse(Buffer.concat(chunks).toString()).resourceSpans)
      sent.push({
        path: request.url!,
        service: flat(resource.attributes)['service.name'],
        spans: scopeSpans.flatMap((scope: any) =>
          scope.spans.map((span: any) => ({ ...span, attributes: flat(span.attributes) })),
        ),
      });
    response.setHeader('content-type', 'application/json').end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  tracer = await collected();
});
afterAll(() => void collector.close());

const flat = (attributes: { key: string; value: object }[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const collected = () =>
  createTracer(`http://127.0.0.1:${(collector.address() as AddressInfo).port}`, newId(), pino({ level: 'silent' }));

/** Ends the tracer, which sends what is left, and answers all that arrived. */
async function flush(): Promise<SentSpan[]> {
  await tracer.close();
  tracer = await collected();
  return sent.splice(0).flatMap((batch) => {
    expect(batch).toMatchObject({ path: '/v1/traces', service: 'quarterdeck' });
    return batch.spans;
  });
}

function api() {
  return createApi({
    platform: app.platform,
    sessions: { verify: () => Promise.reject(new Error('no sessions')) } as never,
    limiter: new RateLimiter(app.db, 0),
    routes: allRoutes(),
    log: pino({ level: 'silent' }),
    tracer: lazy,
  });
}

test('a request is a span in the trace of its caller, without its query string', async () => {
  const { token, organizationId } = await app.organization();
  const server = api();
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const answer = await server.inject({
    url: `/organization/${organizationId}/project?secret=hidden`,
    headers: { authorization: `Token ${token}`, traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  });
  await server.close();
  const spans = await flush();
  expect(spans).toHaveLength(1);
  expect(spans[0]).toMatchObject({
    traceId,
    parentSpanId: '00f067aa0ba902b7',
    kind: 2,
    attributes: {
      'http.request.method': 'GET',
      'url.path': `/organization/${organizationId}/project`,
      'http.response.status_code': answer.statusCode,
      'quarterdeck.request.id': answer.headers['x-request-id'],
    },
  });
  expect(spans[0]!.name).toBe(`GET ${String(spans[0]!.attributes['http.route'])}`);
  expect(spans[0]!.attributes['http.route']).toMatch(/^\/organization\/:\w+\/project$/);
  expect(JSON.stringify(spans)).not.toContain('hidden');
});

test.each([
  ['zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
  ['a forbidden version', 'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  ['other text', 'hello'],
])('a traceparent of %s begins a trace of its own', async (_what, traceparent) => {
  const server = api();
  await server.inject({ url: '/nowhere', headers: { traceparent } });
  await server.close();
  const [span] = await flush();
  expect(span).toMatchObject({ name: 'GET', attributes: { 'http.response.status_code': 404 } });
  expect(span!.traceId).not.toMatch(/^0+$|^4bf92f/);
  expect(span!.parentSpanId ?? '').toBe('');
});

test('a deployment is a span with one inside for each step, with their outcomes', async () => {
  const admin = await app.organization();
  const { application, environment } = await makeExample(admin);
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const spans: SentSpan[] = [];
  // The answer comes with the state; the span ends a moment later.
  await expect
    .poll(async () => spans.push(...(await flush())) && spans.some(({ name }) => name === 'deployment'))
    .toBe(true);
  const whole = spans.find(({ name }) => name === 'deployment')!;
  expect(whole.attributes).toMatchObject({
    'quarterdeck.environment.id': environment.id,
    'quarterdeck.organization.id': admin.organizationId,
    'quarterdeck.action': 'DEPLOY',
    'quarterdeck.outcome': 'SUCCESS',
  });
  expect(whole.attributes['quarterdeck.deployment.id']).toMatch(/^[0-9a-f-]{36}$/);
  const steps = spans.filter((span) => span !== whole);
  expect(steps.map(({ name }) => name)).toEqual(['GIT_CLONE', 'BUILD_QUEUEING', 'BUILD', 'DEPLOYMENT']);
  for (const step of steps)
    expect(step).toMatchObject({
      traceId: whole.traceId,
      parentSpanId: whole.spanId,
      attributes: { 'quarterdeck.service.id': application.id, 'quarterdeck.outcome': 'SUCCESS' },
    });
});

test('a step that fails is an error with its deployment', async () => {
  const admin = await app.organization();
  const { application } = await makeExample(admin, {
    git_repository: { url: 'https://127.0.0.1:1/no/such.git', branch: 'main' },
  });
  ok(await admin.post(`/application/${application.id}/deploy?wait=40`), 200);
  const spans: SentSpan[] = [];
  await expect
    .poll(async () => spans.push(...(await flush())) && spans.some(({ name }) => name === 'deployment'))
    .toBe(true);
  expect(spans.find(({ name }) => name === 'deployment')).toMatchObject({
    status: { code: 2 },
    attributes: { 'quarterdeck.outcome': 'ERROR' },
  });
});

test('without a collector nothing is made', async () => {
  expect(await createTracer('', newId(), pino({ level: 'silent' }))).toBe(noTracer);
});

test('a collector that is away does not keep the program from ending', async () => {
  const away = await createTracer('http://127.0.0.1:1', newId(), pino({ level: 'silent' }));
  away.start('work', { kind: 'internal', attributes: {} }).end();
  await away.close();
});
