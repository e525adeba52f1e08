import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach } from 'vitest';
import { allRoutes } from '#app/routes.ts';
import { createEventStreams } from '#delivery/stream/index.ts';
import { RateLimiter } from '#platform/access/rate-limit.ts';
import { createServer } from '#platform/http/server.ts';
import type { Actor, TestApp } from '#test/harness/app.ts';

/** Event of a stream. */
export interface Sent {
  id: string;
  event: string;
  data: any;
}

/** Client of Server-Sent Events over a real socket, which reads all the time. */
export interface StreamClient {
  status: number;
  /** Body of the answer, if it is an error. */
  body: any;
  events: Sent[];
  /** Id of the last event, or the position that the server announced last. */
  lastId: string;
  /** Position at which the stream began. */
  begin: string;
  /** Resolves once the server has sent that position. */
  begun(): Promise<void>;
  /** Waits for a number of events, or for the condition. */
  until(wanted: number | ((events: Sent[]) => boolean), milliseconds?: number): Promise<Sent[]>;
  /** Resolves when the server has ended the stream. */
  ended: Promise<void>;
  close(): Promise<void>;
}

/** Lets an application's server listen on a socket, and returns its address. */
export async function listen(server: FastifyInstance): Promise<string> {
  return server.server.listening
    ? `http://127.0.0.1:${(server.server.address() as { port: number }).port}`
    : server.listen({ host: '127.0.0.1', port: 0 });
}

/** Starts another process of the same installation: a server of its own with readers of its own. */
export async function startReplica(
  app: TestApp,
  needs: Parameters<typeof allRoutes>[0] = {},
): Promise<{ base: string; close(): Promise<void> }> {
  const streams = createEventStreams({ platform: app.platform, directConfig: app.databaseConfig, channels: [] });
  const server = createServer({
    platform: app.platform,
    sessions: null,
    limiter: new RateLimiter(app.db, 0),
    routes: allRoutes({ streams, ...needs }),
    log: pino({ level: 'silent' }),
  });
  return {
    base: await listen(server),
    close: async () => {
      await server.close();
      await streams.close();
    },
  };
}

/** Options of a stream request: query with its question mark, another server's address, `Last-Event-ID`. */
export interface Ask {
  query?: string;
  base?: string;
  lastId?: string;
}

/** Returns the path of an organization's stream. */
export const streamPath = ({ organizationId }: Pick<Actor, 'organizationId'>, query = ''): string =>
  `/organization/${organizationId}/eventStream${query}`;

/** Opens streams of the application, and closes open ones after each test. */
export function useStreams(app: TestApp) {
  const open: StreamClient[] = [];
  const closeAll = async (): Promise<void> => void (await Promise.all(open.splice(0).map((client) => client.close())));
  afterEach(closeAll);
  const stream = async (
    actor: Pick<Actor, 'organizationId' | 'token'>,
    { query, base, lastId }: Ask = {},
  ): Promise<StreamClient> => {
    const url = `${base ?? (await listen(app.server))}${streamPath(actor, query)}`;
    const client = await follow(url, actor.token, lastId === undefined ? {} : { 'last-event-id': lastId });
    open.push(client);
    if (client.status === 200) await client.begun();
    return client;
  };
  return { stream, open, closeAll };
}

/** Returns the data of all events of a type. */
export const dataOf = (events: Sent[], event: string): any[] =>
  events.filter((one) => one.event === event).map(({ data }) => data);

/** Returns whether a deployment has ended with success. */
export const isDeployed = (events: Sent[]): boolean =>
  dataOf(events, 'deployment').some(({ status }) => status === 'DEPLOYED');

/** Opens a stream of events at an address. */
export async function follow(url: string, token: string, headers: Record<string, string> = {}): Promise<StreamClient> {
  const leave = new AbortController();
  const response = await fetch(url, {
    headers: { authorization: `Token ${token}`, ...headers },
    signal: leave.signal,
  });
  const client = {
    status: response.status,
    body: undefined,
    events: [],
    lastId: '',
    begin: '',
  } as unknown as StreamClient;
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    client.body = await response.json();
    client.ended = Promise.resolve();
  } else client.ended = read(client, response);
  client.close = async () => {
    leave.abort();
    await client.ended;
  };
  client.begun = async () => {
    for (const end = Date.now() + 40_000; !client.begin; await sleep(2))
      if (Date.now() > end) throw new Error('The stream has not begun.');
  };
  client.until = async (wanted, milliseconds = 10_000) => {
    const done = typeof wanted === 'number' ? (events: Sent[]) => events.length >= wanted : wanted;
    for (const end = Date.now() + milliseconds; !done(client.events); await sleep(5))
      if (Date.now() > end)
        throw new Error(`Not within ${milliseconds} ms; there were ${JSON.stringify(client.events)}`);
    return client.events;
  };
  return client;
}

async function read(client: StreamClient, response: Response): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) take(client, block);
    }
  } catch (error) {
    if (!['AbortError', 'TypeError'].includes((error as Error).name)) throw error; // Left, or cut off.
  }
}

/** Processes a block of the stream. As the standard says, an `id` without `data` is stored, and no event is dispatched. */
function take(client: StreamClient, block: string): void {
  const fields = new Map(
    block
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  );
  client.lastId = fields.get('id') ?? client.lastId;
  client.begin ||= client.lastId;
  const data = fields.get('data');
  if (data !== undefined)
    client.events.push({ id: client.lastId, event: fields.get('event') ?? 'message', data: JSON.parse(data) });
}
