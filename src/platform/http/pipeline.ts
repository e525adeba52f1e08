import { addressOfClient } from '#kernel/addresses.ts';
import { Readable } from 'node:stream';
import { createHash, hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, badRequest, invalidField, notFound, preconditionFailed } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';
import type { Action } from '#platform/access/actions.ts';
import { actorOf, authenticate, type Caller, type Credentials } from '#platform/access/authenticate.ts';
import { permits, type Location, type Principal } from '#platform/access/principal.ts';
import { withPlaces } from '#platform/access/visibility.ts';
import type { RateLimiter } from '#platform/access/rate-limit.ts';
import { inSnapshot, inTransaction, type Context, type Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import type { Admission } from '#platform/http/admission.ts';
import { streamOf } from '#platform/http/body-stream.ts';
import { checkBody, checkQuery, serialize } from '#platform/http/compile.ts';
import { FileAnswer } from '#platform/http/file.ts';
import { LongList, textOf } from '#platform/http/long-list.ts';
import type { Settings } from '#platform/settings/index.ts';
import { OnOtherMachine } from '#platform/machines/elsewhere.ts';
import { isPassed } from '#platform/machines/pass.ts';
import { sendOn } from '#platform/machines/send-on.ts';
import { forget, IDEMPOTENCY_HEADER, recall, remember } from '#platform/http/idempotency.ts';
import { parseJson } from '#platform/http/json.ts';
import { callerOf, forbiddenTo, load, ownerOf } from '#platform/http/load.ts';
import type { Call, Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { ignoredFields, ignoredParameters } from '#platform/http/unknown-fields.ts';
import { EventStreamAnswer, sendStream } from '#platform/http/stream.ts';
import { WARNINGS_HEADER, warningsText } from '#platform/http/warnings.ts';

export interface Pipeline extends Credentials {
  limiter: RateLimiter;
  admission: Admission;
  /** Returns the GET with the same path, to whose representation `If-Match` refers. */
  getOf(path: string): Route | undefined;
  /** Signal that is aborted when the server closes: streams end then. */
  closing: AbortSignal;
}

interface Answer {
  status: number;
  text: string | null;
  stream?: EventStreamAnswer;
  file?: FileAnswer;
  list?: LongList;
}

const WAIT_LIMIT_SECONDS = 600;

/**
 * Carries out one request from credentials to answer: caller, target and right, then query and body, then the work (docs/contributing/architecture.md,
 * *A request*). Writes are one transaction.
 */
export async function handle(
  pipeline: Pipeline,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = await callerOf(pipeline, route, request.headers.authorization);
  if (route.action === 'public') return serve(pipeline, route, caller, request, reply);
  const { organizationId } = request.params as Record<string, string>;
  const owner = ownerOf(caller.principal, organizationId);
  const entered = pipeline.admission.enter(caller.principal.id, owner);
  const leave = typeof entered === 'function' ? entered : await entered;
  const onStream = async () => {
    const leaveStream = await pipeline.admission.enter(caller.principal.id, owner, 'connections');
    if (reply.raw.destroyed) leaveStream();
    else reply.raw.once('close', leaveStream);
  };
  try {
    return await serve(pipeline, route, caller, request, reply, onStream);
  } catch (error) {
    if (error instanceof OnOtherMachine)
      return await sendOn(pipeline.platform, error, request, reply, {
        gone: signalOf(reply)(),
        closing: pipeline.closing,
        onStream,
      });
    throw error;
  } finally {
    leave();
  }
}

async function serve(
  pipeline: Pipeline,
  route: Route,
  caller: Caller,
  request: FastifyRequest,
  reply: FastifyReply,
  onStream: () => Promise<void> = () => Promise.resolve(),
): Promise<FastifyReply> {
  const { platform } = pipeline;
  const { authorization: header, 'user-agent': userAgent } = request.headers;
  const params = request.params as Record<string, string>;
  const query = { ...(request.query as Record<string, unknown>) };
  let wait: number;
  try {
    // What another machine has sent on was counted there.
    if (caller.principal.kind === 'token' && !isPassed(platform.vault, platform.clock.now(), request.raw))
      reply.headers((await pipeline.limiter.count(caller.principal.id, platform.clock.now())).headers);
    checkIds(params);
    wait = route.settle ? takeWait(query) : 0;
  } catch (error) {
    // A caller without a valid token learns that, and nothing else.
    if (caller.accessVersion !== undefined) await authenticate(pipeline, header);
    throw error;
  }
  const context: Context = {
    ...platform,
    actor: actorOf(caller.principal, userAgent),
    log: request.log as unknown as Platform['log'],
    requestId: request.id,
    afterCommit: (work) => work(),
  };
  const signal = signalOf(reply);
  const writes = route.transaction ?? route.method !== 'GET';
  const warnings = new Set<string>();
  const headers: Record<string, string> = {};
  const attempt = { context, caller, params, query, request, signal, writes, warnings, headers };
  const prepared = route.before ? await runBefore(pipeline, route, attempt) : undefined;
  const run = (inside: Context) => runHandler(pipeline, route, { ...attempt, context: inside, prepared });
  const { admission } = pipeline;
  const owner = ownerOf(caller.principal, params['organizationId']) ?? caller.principal.id;
  const subject = route.target && !route.target.isShared ? params[route.target.param] : undefined;
  // All statements of a GET see the database at one time (docs/decisions/0035).
  const outcome = writes
    ? await admission.write(owner, subject, () => inTransaction(context, run))
    : route.method !== 'GET'
      ? await run(context)
      : route.transaction === false
        ? await readElsewhere(pipeline, route, attempt, run)
        : await admission.read(owner, () => (route.readsOnlyTarget ? run(context) : inSnapshot(context, run)));
  if (wait > 0 && outcome.call) {
    const call = { ...outcome.call, db: platform.db, afterCommit: context.afterCommit };
    outcome.answer = answerOf(route, await route.settle!(call, outcome.value, wait));
  }
  if (outcome.answer.stream) {
    const { stream } = outcome.answer;
    await onStream().catch((error: unknown) => {
      stream.ended();
      throw error;
    });
    return sendStream(reply, stream, {
      requestId: request.id,
      gone: signal(),
      closing: pipeline.closing,
      log: context.log,
      check: async () => {
        const present = await callerOf(pipeline, route, header);
        const wanted = { db: platform.db, caller: present, header, params, writes: false };
        return (await load(pipeline, route, wanted)).principal;
      },
    });
  }
  reply.headers(headers);
  if (warnings.size > 0) reply.header(WARNINGS_HEADER, warningsText([...warnings]));
  if (outcome.answer.list) {
    await onStream();
    const text = textOf(route.answer.body!, outcome.answer.list, (work) =>
      admission.read(owner, () => work(platform.db)),
    );
    return sendReadable(route, outcome.answer.status, Readable.from(text, { objectMode: false }), reply);
  }
  return send(route, outcome.answer, request, reply);
}

const NO_PARAMETERS = Type.Object({});

/** Placeholder for the database of a read that has none, by `Route.readsOnlyTarget`. */
const NO_DATABASE = new Proxy({} as Database, {
  get: (_database, property) => {
    throw new Error(
      `A route with readsOnlyTarget reads nothing but its target, yet asked the database for ${String(property)}.`,
    );
  },
});

/** Carries out a GET that calls other systems between its statements. A target that was deleted meanwhile is answered as 404. */
async function readElsewhere<T>(
  pipeline: Pipeline,
  route: Route,
  { context, caller, params, request }: Run,
  run: (context: Context) => Promise<T>,
): Promise<T> {
  try {
    return await run(context);
  } catch (error) {
    const { authorization: header } = request.headers;
    if (!(error instanceof AppError))
      await load(pipeline, route, { db: context.db, caller, header, params, writes: false });
    throw error;
  }
}

function checkIds(params: Record<string, string>): void {
  for (const name in params)
    if (params[name]!.includes('\0') || (name.endsWith('Id') && !isId(params[name]!)))
      throw notFound(capitalized(name.slice(0, -2)));
}

/** Creates the signal of a request on demand: most requests end before it could matter. */
function signalOf(reply: FastifyReply): () => AbortSignal {
  let abort: AbortController | undefined;
  return () => {
    if (abort) return abort.signal;
    const made = (abort = new AbortController());
    const { raw } = reply;
    // An answer that went out whole ends nothing: the reason of an abort is an exception with its stack.
    const end = () => void (raw.writableFinished || made.abort());
    if (raw.destroyed) end();
    else raw.once('close', end);
    return made.signal;
  };
}

interface Run {
  context: Context;
  caller: Caller;
  params: Record<string, string>;
  query: Record<string, unknown>;
  request: FastifyRequest;
  signal(): AbortSignal;
  writes: boolean;
  warnings: Set<string>;
  /** Headers of the answer that the handler sets. */
  headers: Record<string, string>;
  /** Body that `Route.before` has worked on; without it the body is read as it came. */
  prepared?: unknown;
}

/** Runs the work of a route that precedes its transaction. Returns the body for the handler, or undefined where there was no work. */
async function runBefore(pipeline: Pipeline, route: Route, run: Run): Promise<unknown> {
  const { wanted, run: work } = route.before!;
  if (wanted && !wanted(peekBody(route, run.request, run.context.settings))) return undefined;
  const call = await callTo(pipeline, route, { ...run, query: { ...run.query }, writes: false });
  await work(call);
  return call.body;
}

/** Returns the body as it came; undefined if it cannot be read, which the handler's call reports. */
function peekBody(route: Route, request: FastifyRequest, settings: Settings): unknown {
  try {
    return readBody(route, request, settings);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** Loads the target of a request for its caller, and checks query and body. */
async function callTo(pipeline: Pipeline, route: Route, run: Run): Promise<Call> {
  const { caller, params, request, writes } = run;
  const { authorization: header, 'user-agent': userAgent } = request.headers;
  const { principal, target } = await load(pipeline, route, { db: run.context.db, caller, header, params, writes });
  const context =
    principal === caller.principal ? run.context : { ...run.context, actor: actorOf(principal, userAgent) };
  const body = run.prepared === undefined ? readBody(route, request, context.settings) : structuredClone(run.prepared);
  if (NUL_IN_URL.test(request.url)) refuseUnkept(run.query, '');
  const unknown = checkQuery(route.query ?? NO_PARAMETERS, run.query);
  for (const warning of ignoredParameters(unknown)) run.warnings.add(warning);
  if (route.body && !route.streamedBody)
    for (const warning of ignoredFields(route, checkBody(route.body, body))) run.warnings.add(warning);
  return {
    ...context,
    ...(route.readsOnlyTarget ? { db: NO_DATABASE } : {}),
    principal,
    target,
    params,
    query: run.query,
    body,
    headers: request.headers,
    peer: addressOfClient(
      request.socket.remoteAddress,
      request.headers['x-forwarded-for'],
      context.settings.trustedProxies,
    ),
    get signal() {
      // Code that reads the signal waits for another system. `settle` does so after the transaction, with this call's properties.
      if (context.db.isTransaction && route.method === 'GET' && !route.settle)
        throw new Error(`${route.id} waits for another system inside a transaction: set \`transaction: false\`.`);
      return run.signal();
    },
    warn: (message) => void run.warnings.add(message),
    answerHeader: (name, value) => void (run.headers[name] = value),
    require: (action: Action, at: Location) => {
      if (!permits(principal, action, at)) throw forbiddenTo(action);
    },
    may: (action, at) => permits(principal, action, at),
  };
}

async function runHandler(
  pipeline: Pipeline,
  route: Route,
  run: Run,
): Promise<{ answer: Answer; value?: unknown; call?: Call }> {
  const { request } = run;
  const call = await callTo(pipeline, route, run);
  // Keys belong to their caller: without a known caller they are not kept.
  const isKept = route.method === 'POST' && route.action !== 'public';
  const key = isKept ? request.headers[IDEMPOTENCY_HEADER] : undefined;
  const fingerprint = key === undefined ? undefined : fingerprintOf(route, request, run.prepared);
  if (fingerprint) {
    const known = await recall(call, call.principal.id, String(key), fingerprint);
    if (known) return { answer: known };
  }
  if (request.headers['if-match'] !== undefined && route.method !== 'GET' && route.method !== 'POST')
    await checkIfMatch(pipeline, route, call);
  try {
    const value = await route.handler(call);
    const answer = answerOf(route, value);
    if (fingerprint) await remember(call, call.principal.id, String(key), answer);
    return { answer, value, call };
  } catch (error) {
    // Without a transaction that rolls back, a repetition would find the key in use: also the one on another machine.
    if (fingerprint && !run.writes) await forget(call, call.principal.id, String(key));
    throw error;
  }
}

/** Escapes that PostgreSQL keeps in no text, NUL and half of a surrogate pair: refused here for every field at once. */
const UNKEPT_ESCAPE = /(?<!\\)(?:\\\\)*\\u(?:0000|[dD][89a-fA-F])/;

/** NUL in a query. Decoding leaves no half of a surrogate pair, so that nothing else needs to be refused. */
const NUL_IN_URL = /%00/;

/** Nesting depth of a body, which no valid body reaches. */
const MAX_DEPTH = 100;

function refuseUnkept(value: unknown, field: string, depth = 0): void {
  if (depth > MAX_DEPTH) throw badRequest(`The body is nested deeper than ${MAX_DEPTH} levels.`);
  if (typeof value === 'string' && value.includes('\0')) throw invalidField(field, 'must not contain a NUL character');
  if (typeof value === 'string' && !value.isWellFormed())
    throw invalidField(field, 'must not contain half of a surrogate pair');
  if (Array.isArray(value)) value.forEach((item, index) => refuseUnkept(item, `${field}[${index}]`, depth + 1));
  else if (value !== null && typeof value === 'object')
    for (const [key, item] of Object.entries(value)) {
      refuseUnkept(key, field || 'body');
      refuseUnkept(item, field ? `${field}.${key}` : key, depth + 1);
    }
}

function readBody(route: Route, request: FastifyRequest, settings: Settings): unknown {
  if (route.streamedBody) return streamOf(route, request, settings);
  if (route.bodyContentType) return readText(route.bodyContentType, request);
  const text = request.body;
  if (text instanceof Buffer && text.length > 0)
    throw new AppError('unsupported_media_type', 'Send the body as `Content-Type: application/json`.');
  if (!route.body) return undefined;
  if (typeof text !== 'string' || text.trim() === '') {
    if (route.optionalBody) return {};
    throw badRequest('A JSON body is required.');
  }
  const body = parse(text);
  if (body === null && route.optionalBody) return {};
  // Only a body with such an escape is gone through.
  if (UNKEPT_ESCAPE.test(text)) refuseUnkept(body, '');
  return body;
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw badRequest(`The body is not JSON: ${(error as Error).message}`);
  }
}

/**
 * Reads a body that is text for its handler, such as YAML. `application/yaml` and `application/x-yaml` are the same, and
 * `application/vnd.acme+json` is JSON (RFC 6839).
 */
function readText(contentType: string, request: FastifyRequest): string {
  const text = request.body instanceof Buffer ? request.body.toString('utf8') : String(request.body ?? '');
  if (text.trim() === '') throw badRequest('A body is required.');
  const given = subtypeOf(request.headers['content-type'] ?? '');
  const wanted = subtypeOf(contentType)!;
  if (given !== wanted && !given?.endsWith(`+${wanted}`))
    throw new AppError('unsupported_media_type', `Send the body as \`Content-Type: ${contentType}\`.`);
  return text;
}

const subtypeOf = (contentType: string): string | undefined =>
  /^[^/]+\/(?:x-)?([^;\s]+)/.exec(contentType.toLowerCase())?.[1];

function takeWait(query: Record<string, unknown>): number {
  const { wait } = query;
  if (wait === undefined) return 0;
  delete query.wait;
  if (typeof wait !== 'string' || !/^\d+$/.test(wait) || Number(wait) > WAIT_LIMIT_SECONDS)
    throw new AppError('bad_request', `wait: must be a whole number of seconds from 0 to ${WAIT_LIMIT_SECONDS}.`, {
      errors: [{ field: 'wait', message: `must be a whole number from 0 to ${WAIT_LIMIT_SECONDS}` }],
    });
  return Number(wait);
}

function answerOf(route: Route, value: unknown): Answer {
  const { status, body, contentType } = route.answer;
  if (value instanceof EventStreamAnswer) return { status, text: null, stream: value };
  if (value instanceof FileAnswer) return { status, text: null, file: value };
  if (value instanceof LongList) return { status, text: null, list: value };
  if (!body) return { status, text: null };
  return { status, text: contentType ? String(value) : serialize(body, value) };
}

const etagOf = (text: string | Buffer): string => `"${hash('sha1', text, 'base64url')}"`;

/** `If-Match` against the representation that a GET would answer now, under the lock of the target (RFC 9110 §13.1.1). */
async function checkIfMatch(pipeline: Pipeline, route: Route, call: Call): Promise<void> {
  const wanted = String(call.headers['if-match']);
  const get = pipeline.getOf(route.path);
  const present = route.current
    ? answerOf({ ...route, answer: { ...route.answer, status: 200 } }, await route.current(call))
    : get
      ? answerOf(get, await get.handler({ ...call, principal: await readerOf(get, route, call), query: {} }))
      : undefined;
  if (!present?.text)
    throw preconditionFailed('If-Match is not supported here: this resource has no representation of its own.');
  if (
    wanted.trim() !== '*' &&
    !wanted.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etagOf(present.text!))
  )
    throw preconditionFailed(
      `The resource was changed since you read it: read it again (its ETag is now ${etagOf(present.text)}).`,
    );
}

/** Returns the caller as the GET knows them: with the scopes that filter its rows, which the write may not have needed. */
async function readerOf(get: Route, route: Route, { db, principal, target }: Call): Promise<Principal> {
  if (!get.filtersRows || route.filtersRows) return principal;
  return withPlaces(db, principal, (target as Location).organizationId);
}

/** `prepared` stands for a streamed body, which is gone. */
function fingerprintOf({ streamedBody }: Route, request: FastifyRequest, prepared: unknown): Buffer {
  const isRead = request.body instanceof Buffer || typeof request.body === 'string';
  const body = streamedBody ? streamedBody.fingerprint(prepared) : isRead ? (request.body as Buffer | string) : '';
  return createHash('sha256').update(`${request.method} ${request.url}\n`).update(body).digest();
}

function send(
  route: Route,
  { status, text, file }: Answer,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.code(status);
  const content = file?.content ?? text;
  if (content === null) return reply.send();
  if (file) reply.header('content-disposition', `attachment; filename="${file.name}"`);
  reply.header('content-type', route.answer.contentType ?? 'application/json; charset=utf-8');
  if (content instanceof Readable) return sendReadable(route, status, content, reply);
  if (route.method !== 'DELETE') {
    const etag = etagOf(content);
    reply.header('etag', etag);
    if (
      route.method === 'GET' &&
      request.headers['if-none-match']?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
    )
      return reply.code(304).send();
  }
  return reply.send(content);
}

/** Sends no faster than it is taken. An error in the middle cuts the connection, so that no half looks whole. */
const sendReadable = (route: Route, status: number, content: Readable, reply: FastifyReply): FastifyReply =>
  reply
    .code(status)
    .headers({
      'content-type': route.answer.contentType ?? 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    })
    .send(content);

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
