import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { Exchange } from '#runtimes/proxy/exchange.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';

/** The server that people's requests come to; it does not listen yet. */
export function createProxyServer(table: RouteTable): Server {
  const server = createServer(
    {
      // Upgrades to anything else (h2c of a careful client) are answered as if they had not been offered (RFC 9110 §7.8).
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 << 10,
      // No limit for uploads; the head of a request still has to come within a minute.
      requestTimeout: 0,
      noDelay: true,
    },
    (request, response) => new Exchange(table, request, response).forward(),
  );
  server.on('upgrade', (request, socket, head) => Exchange.forUpgrade(table, request, socket, head).forward());
  return server;
}
