import type { FastifyInstance, FastifyRequest } from 'fastify';
import { loggedPath } from '#platform/http/logged-path.ts';
import type { Span, Tracer } from '#platform/telemetry/index.ts';

/** Makes a span per request: route, method, status and request id. It holds ids of resources, but no credentials or query strings. */
export function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  const spans = new WeakMap<FastifyRequest, Span>();
  app.addHook('onRequest', async (request) => {
    const route = request.routeOptions.url;
    const { traceparent } = request.headers;
    const span = tracer.start(route ? `${request.method} ${route}` : request.method, {
      kind: 'server',
      attributes: {
        'http.request.method': request.method,
        ...(route ? { 'http.route': route } : {}),
        'url.path': loggedPath(request),
        'quarterdeck.request.id': request.id,
      },
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    });
    spans.set(request, span);
  });
  app.addHook('onResponse', async (request, reply) => {
    const span = spans.get(request);
    span?.set({ 'http.response.status_code': reply.statusCode });
    if (reply.statusCode >= 500) span?.fail(`answered ${reply.statusCode}`);
    span?.end();
  });
}
