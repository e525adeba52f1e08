import type { AddressInfo } from 'node:net';
import { WebSocket, type ClientOptions } from 'ws';
import { expect } from 'vitest';
import type { TestApp } from '#test/harness/app.ts';

/** Plain client of a web socket. */
export interface Client {
  socket: WebSocket;
  /** Subprotocol that the server chose. */
  protocol: string;
  frames: Buffer[];
  texts(): string[];
  /** Returns all received bytes. */
  bytes(): Buffer;
  closed: Promise<{ code: number; reason: string }>;
  /** Returns the JSON of the first frame that satisfies `wanted`. */
  frame<T = any>(wanted?: (frame: T) => boolean): Promise<T>;
}

export interface ClientParts {
  token?: string;
  protocols?: string[];
  options?: ClientOptions;
}

/** Listens on a free port if the server does not yet; returns the address for sockets. */
export async function listen({ server }: Pick<TestApp, 'server'>): Promise<string> {
  if (!server.server.listening) await server.listen({ host: '127.0.0.1', port: 0 });
  return `ws://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
}

export const search = (query: Record<string, unknown>): string =>
  new URLSearchParams(
    Object.entries(query).flatMap(([key, value]) =>
      Array.isArray(value) ? value.map((one, at) => [`${key}[${at}]`, String(one)]) : [[key, String(value)]],
    ),
  ).toString();

/** Opens a socket of an application. Rejects with a `Refusal` if the server answers anything but a handshake. */
export const connect = async (
  app: Pick<TestApp, 'server'>,
  path: string,
  query: Record<string, unknown>,
  parts?: ClientParts,
): Promise<Client> => connectTo(await listen(app), path, query, parts);

/** Opens a socket of the server with that URL. Rejects like `connect`. */
export async function connectTo(
  url: string,
  path: string,
  query: Record<string, unknown>,
  { token, protocols = [], options = {} }: ClientParts = {},
): Promise<Client> {
  const socket = new WebSocket(`${url}${path}?${search(query)}`, protocols, {
    ...options,
    headers: { ...(token === undefined ? {} : { authorization: `Token ${token}` }), ...options.headers },
  });
  const frames: Buffer[] = [];
  socket.on('message', (data: Buffer) => frames.push(data));
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (part) => (text += String(part)));
      response.on('end', () => reject(new Refusal(response.statusCode!, JSON.parse(text), response.headers)));
    });
  });
  socket.on('error', () => undefined);
  const texts = () => frames.map(String);
  return {
    socket,
    protocol: socket.protocol,
    frames,
    texts,
    bytes: () => Buffer.concat(frames),
    closed,
    frame: async (wanted = () => true) => {
      const find = () =>
        texts()
          .map((text) => JSON.parse(text))
          .find(wanted);
      await expect.poll(find).toBeDefined();
      return find();
    },
  };
}

/** Answer to an upgrade that is no handshake. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: any;
  readonly headers: Record<string, unknown>;

  constructor(status: number, body: any, headers: Record<string, unknown>) {
    super(`${status} ${JSON.stringify(body)}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** Returns the refusal of a connection; throws if the socket opens. */
export async function refusal(...of: Parameters<typeof connect>): Promise<Refusal> {
  const answer = await connect(...of).catch((error: unknown) => error);
  if (answer instanceof Refusal) return answer;
  throw answer instanceof Error ? answer : new Error('It was opened.');
}
