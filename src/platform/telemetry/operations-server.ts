import type { Server } from 'node:http';
import type { Registry } from 'prom-client';
import { createServer } from '#kernel/node-http.ts';
import { sql, type Database } from '#platform/database/index.ts';

/** Process as a load balancer sees it: started, and not about to end. */
export interface Readiness {
  isStarted: boolean;
}

/** Creates the server for operators: /healthz (the process answers), /readyz (it is started, and the database answers), /metrics (Prometheus). */
export function createOperationsServer(db: Database, registry: Registry, readiness: Readiness): Server {
  return createServer((request, response) => {
    const answer = (status: number, text: string, type = 'application/json') =>
      response.writeHead(status, { 'content-type': type }).end(text);
    const path = request.url?.split('?')[0];
    if (path === '/healthz') answer(200, '{"status":"ok"}');
    else if (path === '/readyz' && !readiness.isStarted)
      answer(503, '{"status":"not ready","reason":"the process starts or ends"}');
    else if (path === '/readyz')
      sql`select 1`.execute(db).then(
        () => answer(200, '{"status":"ready"}'),
        () => answer(503, '{"status":"not ready","reason":"the database does not answer"}'),
      );
    else if (path === '/metrics')
      registry.metrics().then(
        (text) => answer(200, text, registry.contentType),
        () => answer(503, '{"status":"the metrics cannot be read"}'),
      );
    else answer(404, '{"status":"not found"}');
  });
}
