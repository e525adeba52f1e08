import type { IncomingMessage } from 'node:http';
import { badRequest, invalidField, notFound } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';
import { actorOf, authenticate } from '#platform/access/authenticate.ts';
import type { Location, Principal } from '#platform/access/principal.ts';
import type { Context, Platform } from '#platform/context.ts';
import { audit } from '#platform/events/audit.ts';
import { checkQuery } from '#platform/http/compile.ts';
import { callerOf, load, ownerOf } from '#platform/http/load.ts';
import type { Pipeline } from '#platform/http/pipeline.ts';
import { Type } from '#platform/http/schema.ts';
import type { Slots } from '#platform/http/slots.ts';
import { isPassed } from '#platform/machines/pass.ts';
import { refuseOrigin } from '#platform/sockets/origin.ts';
import { readQuery } from '#platform/sockets/query.ts';
import { IDS, type Socket, type SocketCall, type SocketRun } from '#platform/sockets/socket.ts';

/** Parts of the server that openings need. */
export interface Opening {
  pipeline: Pick<Pipeline, 'platform' | 'sessions' | 'memory' | 'limiter' | 'admission'>;
  slots: Slots;
}

/** Socket that may be opened: every check has passed. */
export interface Opened {
  principal: Principal;
  run: SocketRun;
  /** Returns the caller as they are now. Throws the error that would refuse an opening now. */
  check(): Promise<Principal>;
  /** Gives back what it took; may be called again. */
  release(): void;
}

export interface Asked {
  request: IncomingMessage;
  /** `Authorization`, or what a browser says instead. */
  authorization: string | undefined;
  /** Query string, without the question mark. */
  search: string;
  requestId: string;
  log: Platform['log'];
  signal: AbortSignal;
}

/** Checks an opening and returns the opened socket, in the order of a request: caller, target and right, then the query. */
export async function openSocket(parts: Opening, socket: Socket, asked: Asked): Promise<Opened> {
  const { platform } = parts.pipeline;
  const { request, authorization, requestId, log, signal } = asked;
  const { principal: known } = await authenticate(parts.pipeline, authorization);
  // What another machine has sent on was counted and looked at there.
  if (!isPassed(platform.vault, platform.clock.now(), request)) {
    if (known.kind === 'token') await parts.pipeline.limiter.count(known.id, platform.clock.now());
    refuseOrigin(request.headers, platform.settings.socketOrigins);
  }
  const query = readQuery(asked.search);
  const params = paramsOf(socket, query);
  const owner = ownerOf(known, params['organizationId']);
  const release = await admit(parts, known, owner);
  try {
    const find = async (caller: Parameters<typeof load>[2]['caller']) => {
      const wanted = { db: platform.db, caller, header: authorization, params, writes: false };
      const found = await load(parts.pipeline, socket, wanted);
      refuseElsewhere(socket, query, found.target);
      return found;
    };
    const { principal, target } = await find({ principal: known });
    checkQuery(Type.Object({ ...IDS, ...socket.query?.properties }), query);
    const context: Context = {
      ...platform,
      actor: actorOf(principal, request.headers['user-agent']),
      log,
      requestId,
      afterCommit: (work) => work(),
    };
    const call: SocketCall = { ...context, principal, target, query, signal };
    const run = await socket.open(call);
    if (socket.event) await audit(context, { organizationId: target.organizationId, ...socket.event(call) });
    const check = async () => (await find(await callerOf(parts.pipeline, socket, authorization))).principal;
    return { principal, run, check, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Counts the socket among the open connections of its caller and among the sockets of the process. */
async function admit(
  { pipeline, slots }: Opening,
  principal: Principal,
  owner: string | undefined,
): Promise<() => void> {
  const { socketsPerCaller: perCaller, sockets: perProcess } = pipeline.platform.settings;
  const leave = await pipeline.admission.enter(principal.id, owner, 'connections');
  let free: () => void;
  try {
    free = slots.take(principal.id, { perCaller, perProcess });
  } catch (error) {
    leave();
    throw error;
  }
  let released = false;
  return () => {
    if (released) return;
    released = true;
    free();
    leave();
  };
}

/** Returns the ids by which the target is found. */
function paramsOf(socket: Socket, query: Record<string, unknown>): Record<string, string> {
  const { param } = socket.target!;
  const id = query[param];
  if (id === undefined) throw invalidField(param, 'is required');
  for (const name of Object.keys(IDS))
    if (query[name] !== undefined && !isId(query[name] as string))
      throw invalidField(name, 'must be a lower-case UUID');
  if (Array.isArray(id)) throw badRequest(`${param}: must be one id.`);
  const organizationId = query['organization'] as string | undefined;
  return { [param]: id as string, ...(organizationId === undefined ? {} : { organizationId }) };
}

/** 404 where an id around the target is another one than it is in: the client means something else. */
function refuseElsewhere({ target }: Socket, query: Record<string, unknown>, found: Location): void {
  const { projectId, environmentId, clusterId, cluster_id } = found as Location & { cluster_id?: string };
  const own = { project: projectId, environment: environmentId, cluster: clusterId ?? cluster_id };
  for (const [name, id] of Object.entries(own))
    if (id !== undefined && query[name] !== undefined && query[name] !== id) throw notFound(target!.name);
}
