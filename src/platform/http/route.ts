import type { Static, TObject, TSchema } from 'typebox';
import type { Action } from '#platform/access/actions.ts';
import type { Location, Principal } from '#platform/access/principal.ts';
import type { Context, Platform } from '#platform/context.ts';
import type { Database } from '#platform/database/index.ts';
import type { Settings } from '#platform/settings/index.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Names of the ids in a path: `/project/{projectId}` has `projectId`. */
type PathParams<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? { [K in Name]: string } & PathParams<Rest>
  : {};

/** Finder of an addressed thing. The HTTP layer is its only caller, always together with an action. */
export interface Target<T extends Location> {
  /** Name in messages: `Project not found.` */
  name: string;
  /** Parameter of the path that holds its id. */
  param: string;
  /**
   * The thing with that id in one of the organizations, or undefined. `lock` is set in writes: the row is locked for update
   * (for share with `isShared`), so that preconditions hold until the commit. `userId` is whose access version the answer carries, where `tellsAccess` is set.
   */
  find(
    db: Database,
    id: string,
    organizationIds: string[],
    options: { lock: boolean; userId?: string | null },
  ): Promise<(T & { accessVersion?: string | null }) | undefined>;
  /** True if the search covers every organization of the caller, whatever organization the path names: some clients send a nil id there. */
  inAnyOrganization?: true;
  /** True if writes lock it together, against its deletion only: they do not wait for each other. */
  isShared?: true;
  /** True if `find` reads the access version (access/remembered.ts) in its statement, which saves the one that looks up the caller. */
  tellsAccess?: true;
}

/** Arguments of a handler. `target` was loaded for the route's action and may be used for that. */
export interface Call<
  T = unknown,
  P = Record<string, string>,
  Q = Record<string, unknown>,
  B = unknown,
> extends Context {
  principal: Principal;
  target: T;
  params: P;
  query: Q;
  body: B;
  headers: Record<string, string | string[] | undefined>;
  /** Address of the client: of the connection, or what a trusted proxy in front says (`QUARTERDECK_TRUSTED_PROXIES`). */
  peer?: string;
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** Adds a warning to the header `Quarterdeck-Warnings`, for input that was accepted and has no effect. */
  warn(message: string): void;
  /** Sets a header of the answer, which a repetition with the same `Idempotency-Key` does not have. */
  answerHeader(name: string, value: string): void;
  /** Throws 403 unless the caller may do the action at the place too (a second thing that a body names). */
  require(action: Action, at: Location): void;
}

/** Call whose body is not read yet. */
export interface BodyCall extends Platform {
  params: Record<string, string>;
  headers: Record<string, string | string[] | undefined>;
  /** Address of the client, as in `Call.peer`. */
  peer?: string;
}

/** Call whose body is longer than the limit. */
export interface TooLargeCall extends BodyCall {
  /** Body, which nothing keeps: it may be read once, and ends with an error beyond 32 MiB. */
  body: AsyncIterable<Buffer>;
}

/** Endpoint as a value: router, document, access checks and tests are all read from it (docs/contributing/architecture.md, *A request*). */
export interface RouteDefinition<P extends string, Q extends TObject, B extends TSchema, T extends Location> {
  /** Operation id, unique. */
  id: string;
  method: Method;
  path: P;
  /** Tag of the reference interface. */
  tag: string;
  summary: string;
  description?: string;
  /** Permission that the caller needs, `public` (no credentials), or `authenticated` (any valid token). */
  action: Action | 'public' | 'authenticated';
  target?: Target<T>;
  /**
   * Set where the answer has rows of several places, such as all environments of a project: its queries leave out rows that role or policy of
   * the caller does not permit (access/visibility.ts).
   */
  filtersRows?: true;
  query?: Q;
  body?: B;
  /**
   * Set where a field that is not known could narrow or protect something, as in a token: such a body is 400. Elsewhere a header of the answer
   * names unknown fields (unknown-fields.ts).
   */
  refusesUnknownFields?: true;
  /** True if the body may be missing although `body` is given; it is then `{}`. */
  optionalBody?: boolean;
  /** Called before a body is read, to refuse callers that send too many. Throws the refusal. */
  beforeBody?(call: BodyCall): void;
  /** Called for a body above the limit, before the refusal with 413. It can note that a call was lost. */
  onTooLarge?(call: TooLargeCall): Promise<void>;
  /** Set when the body is text of this type instead of JSON; `body` is then a string's schema. */
  bodyContentType?: string;
  /**
   * Set when the body is too large for memory: `call.body` is then a Readable, of one of these types and of at most so many bytes, which
   * `before` reads. The first type is `bodyContentType`, and `body` is for the document alone.
   */
  streamedBody?: {
    types: readonly string[];
    mostBytes(settings: Settings): number;
    /** Returns what tells the content of a body that `before` has read from any other, for `Idempotency-Key`. */
    fingerprint(body: unknown): string;
  };
  /** Success status and its body; null for none. */
  answer: {
    status: 200 | 201 | 202 | 204;
    body: TSchema | null;
    description?: string;
    contentType?: string;
    /** Text of the Server-Sent Events that a GET answers instead of its body where the query asks for them. */
    stream?: TSchema;
  };
  /**
   * Errors besides the common ones: 401, 403 (where `action` is a permission), 404 (where the path names something), 429, 500, 503, and 400
   * where there is input.
   */
  errors?: (400 | 401 | 403 | 404 | 409 | 429 | 502)[];
  /**
   * True if the handler runs in one transaction. Default: true; GETs read from one snapshot. False for handlers that talk to other systems,
   * which must not be done inside one: they open their own with `inTransaction` or `inSnapshot`.
   */
  transaction?: boolean;
  /** Set if a GET answers its target and asks nothing else: one statement needs no transaction. `call.db` throws. */
  readsOnlyTarget?: true;
  /**
   * Work that takes long and precedes the transaction, such as asking another system or reading a file. `wanted` looks at the body as it
   * came; without it every call is worked on. `run` gets the checked call with its target as it is then, not locked; what it puts into the
   * body reaches the handler. Throws what is wrong.
   */
  before?: {
    wanted?(body: unknown): boolean;
    run(call: Call<T, PathParams<P>, Static<Q>, Static<B>>): Promise<void>;
  };
  /**
   * Returns a value of `answer.body`, an EventStreamAnswer (http/stream.ts), a FileAnswer (http/file.ts) or a LongList (http/long-list.ts).
   */
  handler(call: Call<T, PathParams<P>, Static<Q>, Static<B>>): Promise<unknown> | unknown;
  /** Present representation for `If-Match`, where no GET has the same path. */
  current?(call: Call<T, PathParams<P>, Static<Q>, unknown>): Promise<unknown>;
  /**
   * Actions and statuses take `?wait=<seconds>`: called after the commit, it answers again when the deployment has ended or the time is over.
   * `call.db` is outside any transaction.
   */
  settle?(call: Call<T, PathParams<P>, Static<Q>, Static<B>>, answer: unknown, seconds: number): Promise<unknown>;
}

/** Route with its types forgotten, as router and document see it. */
export type Route = Omit<
  RouteDefinition<string, TObject, TSchema, Location>,
  'handler' | 'before' | 'current' | 'settle' | 'target'
> & {
  target?: Target<Location>;
  before?: { wanted?(body: unknown): boolean; run(call: Call): Promise<void> };
  handler(call: Call): Promise<unknown> | unknown;
  current?(call: Call): Promise<unknown>;
  settle?(call: Call, answer: unknown, seconds: number): Promise<unknown>;
};

/** Defines an endpoint. */
export function defineRoute<P extends string, Q extends TObject, B extends TSchema, T extends Location>(
  definition: RouteDefinition<P, Q, B, T>,
): Route {
  return definition as unknown as Route;
}
