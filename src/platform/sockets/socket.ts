import type { Static, TObject } from 'typebox';
import type { Action } from '#platform/access/actions.ts';
import type { Location, Principal } from '#platform/access/principal.ts';
import type { Context } from '#platform/context.ts';
import type { AuditEntry } from '#platform/events/audit.ts';
import type { Target } from '#platform/http/route.ts';
import { Type, Uuid } from '#platform/http/schema.ts';
import type { Peer } from '#platform/sockets/peer.ts';

/** Call that opens a socket. `target` was loaded for the socket's action and may be used for that. */
export interface SocketCall<T = unknown, Q = Record<string, unknown>> extends Context {
  principal: Principal;
  target: T;
  query: Q;
  /** Aborted when the client goes away or the server closes. */
  signal: AbortSignal;
}

/** Runs until the socket is to be closed with 1000; returns the reason for the client. Throws the error of any other end. */
export type SocketRun = (peer: Peer) => Promise<string | void>;

/** Web socket as a value, like a route: server, page and access tests read it (docs/sockets.md). */
export interface SocketDefinition<Q extends TObject, T extends Location> {
  /** Unique among routes and sockets. */
  id: string;
  path: string;
  summary: string;
  /** Description of the frames, for the page. */
  frames: string;
  /** Action that the caller must be allowed to do. It is checked again while the socket is open. */
  action: Action;
  /** `param` names the key of the query that holds the id. */
  target: Target<T>;
  /** Schema of the query besides the ids (`IDS`). */
  query?: Q;
  /** Frames that the client may send; if absent, its frames are left unread. */
  input?: 'bytes' | 'binary';
  /** Audit event of each opening, written before the client is told that it is open. */
  event?(call: SocketCall<T, Static<Q>>): Omit<AuditEntry, 'organizationId'>;
  /** Refuses by throwing whatever can be refused, before the client is told that the socket is open. */
  open(call: SocketCall<T, Static<Q>>): Promise<SocketRun> | SocketRun;
}

/** Socket with its types forgotten, as the server sees it. */
export type Socket = Omit<SocketDefinition<TObject, Location>, 'event' | 'open'> & {
  event?(call: SocketCall): Omit<AuditEntry, 'organizationId'>;
  open(call: SocketCall): Promise<SocketRun> | SocketRun;
};

/** Defines a web socket. */
export function defineSocket<Q extends TObject, T extends Location>(definition: SocketDefinition<Q, T>): Socket {
  return definition as unknown as Socket;
}

/** Ids that the query of every socket may hold: those around the target have to be the ones that it is in. */
export const IDS = {
  organization: Type.Optional(Uuid),
  project: Type.Optional(Uuid),
  environment: Type.Optional(Uuid),
  cluster: Type.Optional(Uuid),
  service: Type.Optional(Uuid),
};
