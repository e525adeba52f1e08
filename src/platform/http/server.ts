import type { IncomingHttpHeaders } from 'node:http';
import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { newId } from '#kernel/ids.ts';
import { notFound } from '#kernel/errors.ts';
import { CallerMemory } from '#platform/access/remembered.ts';
import { drain } from '#platform/http/drain.ts';
import { answerTo } from '#platform/http/errors.ts';
import { handle, type Pipeline } from '#platform/http/pipeline.ts';
import type { Route } from '#platform/http/route.ts';
import { noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { traceRequests } from '#platform/telemetry/requests.ts';

const BODY_LIMIT = 1024 * 1024;

export interface ServerOptions extends Omit<Pipeline, 'getOf' | 'memory' | 'closing'> {
  routes: Route[];
  log: Logger;
  /** Gets a span per request; without it none is made. */
  tracer?: Tracer;
  /** Called after each answer, for metrics. */
  onAnswer?: (route: string, method: string, status: number, seconds: number) => void;
}

const hasNoBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = answerTo(error, request.id);
  if (answer.status >= 500)
    request.log.error({ err: error, detail: (error as { detail?: unknown }).detail }, 'request failed');
  return reply
    .code(answer.status)
    .headers({ ...answer.headers, 'x-request-id': request.id })
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(answer.body));
}

/** The API's HTTP server with all its routes; the caller listens. Every path is served bare and under /api/v1 (decisions.md 3). */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    loggerInstance: options.log as never,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    genReqId: () => newId(),
    // As long as a request line can be: an id that is none is 404, however long.
    routerOptions: { maxParamLength: 16_384 },
    // What the router itself refuses is a path that leads nowhere, such as an id with half of an escape.
    frameworkErrors: (_error, request, reply) => answerError(notFound('Path'), request, reply),
    rewriteUrl: (request) => (request.url ?? '/').replace(/^\/api\/v1(?=\/)/, ''),
    requestTimeout: 60_000,
    forceCloseConnections: 'idle',
    // What came on a connection that stood is answered, with the request to close it.
    return503OnClosing: false,
  }) as unknown as FastifyInstance;
  app.removeAllContentTypeParsers();
  // Bodies stay text until the caller is known: nobody learns from a parser's complaint what needs a token.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    const { headers } = request;
    // The type of a body that is not there is nobody's business, even one that is none (decisions.md 5).
    if (headers['content-type'] !== undefined && hasNoBody(headers)) delete headers['content-type'];
    done();
  });
  if (options.tracer && options.tracer !== noTracer) traceRequests(app, options.tracer);
  app.addHook('onResponse', (request, reply, done) => {
    const ms = reply.elapsedTime;
    const path = request.routeOptions.url ?? 'unknown';
    options.onAnswer?.(path, request.method, reply.statusCode, ms / 1000);
    request.log.info(
      {
        method: request.method,
        path: request.url.split('?')[0],
        status: reply.statusCode,
        ms: Math.round(ms * 10) / 10,
      },
      'request',
    );
    done();
  });
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(() => {
    throw notFound('Path');
  });

  const gets = new Map(options.routes.filter((route) => route.method === 'GET').map((route) => [route.path, route]));
  const closing = new AbortController();
  // Before it waits for what is under way: a stream has no end of its own.
  app.addHook('preClose', async () => {
    closing.abort();
    await drain(app.server);
  });
  const pipeline: Pipeline = {
    ...options,
    memory: new CallerMemory(),
    getOf: (path) => gets.get(path),
    closing: closing.signal,
  };
  for (const route of options.routes) {
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      exposeHeadRoute: false,
      handler: (request, reply) => handle(pipeline, route, request, reply),
    });
  }
  return app;
}
