import { createServer, ServerResponse } from '#kernel/node-http.ts';
import type { IncomingMessage, Server, ServerResponse as Response } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Duplex } from 'node:stream';
import { asksForWebSocket, hasBody, refusalOf } from '#runtimes/proxy/builtin/admission.ts';
import { answerError } from '#runtimes/proxy/builtin/answers.ts';
import { Exchange } from '#runtimes/proxy/builtin/exchange.ts';
import { contain } from '#runtimes/proxy/builtin/faults.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import type { Visit, Visits } from '#runtimes/proxy/builtin/visits.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';

/** Milliseconds of silence after which the system probes whether the peer is still there (TCP keep-alive). */
const VANISHED_MS = 60_000;

interface Parts {
  table: RouteTable;
  limits: ProxyLimits;
  visits: Visits;
  isRetired(): boolean;
}

/** Creates the server for HTTP/1.1. Node's parser reads the requests; admitted ones go to undici. */
export function createHttpServer(parts: Parts): Server {
  const { limits, visits } = parts;
  const underWay = (request: IncomingMessage) => visits.of(request.socket)?.underWay ?? 0;
  const server = createServer(
    {
      // Other offers (such as h2c) are ignored (RFC 9110 §7.8).
      shouldUpgradeCallback: (request) => asksForWebSocket(request) && !hasBody(request) && underWay(request) === 0,
      keepAliveTimeout: limits.idleMs,
      maxHeaderSize: limits.headBytes,
      headersTimeout: limits.headMs,
      // Uploads have no total time limit while they make progress: see `stallMs`.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(1_000, limits.headMs / 4),
      noDelay: true,
      // Nothing else detects a websocket visitor that vanished silently.
      keepAlive: true,
      keepAliveInitialDelay: VANISHED_MS,
    },
    (request, response) => {
      const visit = visits.of(request.socket);
      // The bytes after a refused request may be a part of it.
      if (!visit || visit.isRefused) return;
      if (visit.waiting >= limits.pipelined) {
        visit.isRefused = true;
        return void visit.socket.destroy();
      }
      visit.begin();
      response.once('close', () => {
        visit.end();
        visit.serveNext();
      });
      visit.serveInTurn(() =>
        contain(
          () => serve(parts, request, response, visit),
          () => response.destroy(),
        ),
      );
    },
  );
  // Node would silently drop lines beyond its default limit; `headLines` refuses them instead.
  server.maxHeadersCount = 0;
  server.on('upgrade', (request, socket, head) => {
    contain(
      () => upgrade(parts, request, socket, head),
      () => socket.destroy(),
    );
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => socket.destroy());
    socket.end('HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  });
  return server;
}

function serve({ table, limits, isRetired }: Parts, request: IncomingMessage, response: Response, visit: Visit): void {
  if (isRetired()) response.shouldKeepAlive = false;
  const refusal = asksForWebSocket(request)
    ? (refusalOf(request, limits) ?? { status: 400, message: 'A request to upgrade comes alone on its connection.' })
    : refusalOf(request, limits);
  if (refusal) return refuse(visit, request, response, refusal);
  new Exchange(table, limits, { request, response, trusted: visit.trusted }).start();
}

/** Answers and ends the connection: the following bytes may be a part of the refused request. */
function refuse(
  visit: Visit,
  request: IncomingMessage,
  response: Response,
  { status, message }: { status: number; message: string },
): void {
  visit.isRefused = true;
  response.shouldKeepAlive = false;
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  response.once('finish', () => request.socket.destroySoon());
  answerError(request, response, status, message);
}

/** Handles a websocket: its connection is passed through once the upstream accepts. */
function upgrade({ table, limits, visits }: Parts, request: IncomingMessage, socket: Duplex, early: Buffer): void {
  socket.on('error', () => socket.destroy());
  const visit = visits.of(request.socket);
  // A Node without `shouldUpgradeCallback` passes every kind of upgrade on.
  if (!visit || visit.underWay > 0) return void socket.destroy();
  visit.begin();
  socket.once('close', () => visit.end());
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.on('finish', () => socket.end());
  const refusal = refusalOf(request, limits);
  if (refusal) return refuse(visit, request, response, refusal);
  const onUpgrade = (fields: string[], upstream: Duplex, done: () => void) => {
    response.detachSocket(socket as Socket);
    let head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n';
    for (let at = 0; at < fields.length; at += 2) head += `${fields[at]}: ${fields[at + 1]}\r\n`;
    socket.write(`${head}\r\n`, 'latin1');
    if (early.length > 0) upstream.write(early);
    // Either side's end or error ends both; the cause is irrelevant here.
    pipeline(socket, upstream, socket, () => {
      socket.destroy();
      upstream.destroy();
      done();
    });
  };
  new Exchange(table, limits, { request, response, trusted: visit.trusted, onUpgrade }).start();
}
