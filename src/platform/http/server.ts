import Fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { newId } from '#kernel/ids.ts';
import { methodNotAllowed, notFound } from '#kernel/errors.ts';
import { CallerMemory } from '#platform/access/remembered.ts';
import { Admission } from '#platform/http/admission.ts';
import { hangUpOnSlowRequests, hasNoBody, passStreams, STREAMED_REQUEST_MS } from '#platform/http/body-stream.ts';
import { drain } from '#platform/http/drain.ts';
import { answerTo } from '#platform/http/errors.ts';
import { loggedPath } from '#platform/http/logged-path.ts';
import { MethodsOfPaths } from '#platform/http/methods.ts';
import { handle, type Pipeline } from '#platform/http/pipeline.ts';
import type { Route } from '#platform/http/route.ts';
import { bodyHook } from '#platform/http/too-large.ts';
import { servePages } from '#platform/pages/index.ts';
import { SocketServer, type Socket } from '#platform/sockets/index.ts';
import { noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { traceRequests } from '#platform/telemetry/requests.ts';

const BODY_LIMIT = 1024 * 1024;

export interface ServerOptions extends Omit<Pipeline, 'getOf' | 'memory' | 'closing' | 'admission'> {
  routes: Route[];
  /** Web sockets beside the routes; without it there are none. */
  sockets?: readonly Socket[];
  /** Milliseconds between two pings of a web socket; 25 s without. */
  socketPingMs?: number;
  log: Logger;
  /** Gets a span per request; without it none is made. */
  tracer?: Tracer;
  /** Called after each answer, for metrics. */
  onAnswer?: (route: string, method: string, status: number, seconds: number) => void;
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = answerTo(error, request.id);
  if (answer.status === 500)
    request.log.error({ err: error, detail: (error as { detail?: unknown }).detail }, 'request failed');
  // Another system has failed or this one is busy: no fault of the program, of which a stack would tell something.
  else if (answer.status > 500)
    request.log.warn(
      { status: answer.status, problem: answer.body.message, cause: causeOf(error) },
      'request could not be served',
    );
  return reply
    .code(answer.status)
    .headers({ ...answer.headers, 'x-request-id': request.id })
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(answer.body));
}

const causeOf = (error: unknown): string | undefined =>
  error instanceof Error && error.cause instanceof Error ? error.cause.message : undefined;

/**
 * Creates the API's HTTP server with all its routes; the caller listens. Every path is served bare and under /api/v1
 * (docs/contributing/rules.md 3).
 */
export function createServer(options: ServerOptions): FastifyInstance {
  let sockets: SocketServer | undefined;
  const app = Fastify({
    // A request that offers HTTP/2, as some clients always do, or asks a route for a web socket, is answered as if it did not.
    http: { shouldUpgradeCallback: (request) => sockets?.wants(request) ?? false },
    loggerInstance: options.log as never,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_LIMIT,
    genReqId: () => newId(),
    // As long as a request line can be: an id that is none is 404, however long.
    routerOptions: { maxParamLength: 16_384 },
    // What the router itself refuses is a path that leads nowhere, such as an id with half of an escape.
    frameworkErrors: (_error, request, reply) => answerError(notFound('Path'), request, reply),
    rewriteUrl: (request) => (request.url ?? '/').replace(/^\/api\/v1(?=\/)/, ''),
    requestTimeout: STREAMED_REQUEST_MS,
    forceCloseConnections: 'idle',
    // What came on a connection that stood is answered, with the request to close it.
    return503OnClosing: false,
  }) as unknown as FastifyInstance;
  hangUpOnSlowRequests(app);
  app.removeAllContentTypeParsers();
  // Bodies stay text until the caller is known: a parser's complaint must not reveal anything without a token.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    const { headers } = request;
    // The type of an absent body is ignored, even an invalid one (docs/contributing/rules.md 5).
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
        path: loggedPath(request),
        status: reply.statusCode,
        ms: Math.round(ms * 10) / 10,
      },
      'request',
    );
    done();
  });
  app.setErrorHandler(answerError);
  const paths = new MethodsOfPaths(options.routes);
  app.setNotFoundHandler((request) => {
    const allowed = paths.methodsOf(request.url);
    throw allowed.length > 0 ? methodNotAllowed(request.method, allowed) : notFound('Path');
  });
  // Who opens the address of the API in a browser is led to what it can do.
  app.get('/', { exposeHeadRoute: false }, (_request, reply) => reply.redirect('/openapi.json'));
  servePages(app, options.platform.settings);

  const gets = new Map(options.routes.filter((route) => route.method === 'GET').map((route) => [route.path, route]));
  const closing = new AbortController();
  // Before it waits for what is under way: a stream has no end of its own.
  app.addHook('preClose', async () => {
    closing.abort();
    await sockets?.closed();
    await drain(app.server);
  });
  const { settings } = options.platform;
  const pipeline: Pipeline = {
    ...options,
    memory: new CallerMemory(),
    admission: new Admission({
      perCaller: settings.requestsInFlightPerCaller,
      perOrganization: settings.requestsInFlightPerOrganization,
      // The rest is for reads.
      writes: Math.floor((settings.databasePoolSize * 3) / 4),
    }),
    getOf: (path) => gets.get(path),
    closing: closing.signal,
  };
  sockets = new SocketServer({
    pipeline,
    sockets: options.sockets ?? [],
    ...(options.onAnswer ? { onAnswer: options.onAnswer } : {}),
    ...(options.socketPingMs === undefined ? {} : { pingMs: options.socketPingMs }),
  });
  sockets.attach(app);
  const mount = (scope: FastifyInstance, route: Route) =>
    scope.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      exposeHeadRoute: false,
      config: { streams: route.streamedBody !== undefined },
      ...(route.beforeBody || route.onTooLarge ? { preParsing: bodyHook(options.platform, route, BODY_LIMIT) } : {}),
      handler: (request, reply) => handle(pipeline, route, request, reply),
    });
  for (const route of options.routes) if (!route.streamedBody) mount(app, route);
  void app.register((scope, _options, done) => {
    passStreams(scope);
    for (const route of options.routes) if (route.streamedBody) mount(scope, route);
    done();
  });
  return app;
}
