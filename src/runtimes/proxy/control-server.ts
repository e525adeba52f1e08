import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { ControlAnswer, ControlRequest, ProxyStatus } from '#runtimes/proxy/protocol.ts';
import type { RouteFiles } from '#runtimes/proxy/route-files.ts';
import type { RouteTable } from '#runtimes/proxy/route-table.ts';
import type { Upstreams } from '#runtimes/proxy/upstreams.ts';

export interface ControlParts {
  table: RouteTable;
  files: RouteFiles;
  upstreams: Upstreams;
  status(): ProxyStatus;
}

/** Does what the control plane asks. Disk first, so that a restart never knows less than was answered. */
async function perform(parts: ControlParts, request: ControlRequest): Promise<ControlAnswer> {
  switch (request.do) {
    case 'set': {
      const { serviceId, generation, routes } = request;
      parts.table.check({ serviceId, generation, routes });
      parts.files.write({ serviceId, generation, routes });
      parts.table.set({ serviceId, generation, routes });
      return { ok: true };
    }
    case 'remove':
      parts.files.delete(request.serviceId);
      parts.table.remove(request.serviceId);
      return { ok: true };
    case 'drained':
      await parts.upstreams.drained(request.upstreams, request.timeoutMs);
      return { ok: true };
    case 'status':
      return { ok: true, status: parts.status() };
  }
}

async function answer(parts: ControlParts, request: IncomingMessage): Promise<ControlAnswer> {
  try {
    return await perform(parts, JSON.parse(await text(request)) as ControlRequest);
  } catch (error) {
    const code = error instanceof RuntimeError && (error.code === 'superseded' || error.code === 'refused');
    return { ok: false, code: code ? (error.code as 'refused') : 'failed', message: (error as Error).message };
  }
}

/** The server on the control socket: JSON over HTTP, open to whoever may read the proxy's folder. */
export function createControlServer(parts: ControlParts): Server {
  return createServer((request, response) => {
    void answer(parts, request).then((result) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
    });
  });
}
