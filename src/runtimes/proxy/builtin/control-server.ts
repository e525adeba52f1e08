import { createServer } from '#kernel/node-http.ts';
import type { IncomingMessage, Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { RuntimeError } from '#runtimes/runtime.ts';
import type { ControlAnswer, ControlRequest, ProxyRequests, ProxyStatus } from '#runtimes/proxy/builtin/protocol.ts';
import type { RouteFiles } from '#runtimes/proxy/route-files.ts';
import type { RouteTable } from '#runtimes/proxy/builtin/route-table.ts';
import type { Upstreams } from '#runtimes/proxy/builtin/upstreams.ts';

export interface ControlParts {
  table: RouteTable;
  files: RouteFiles;
  upstreams: Upstreams;
  status(): ProxyStatus;
  requests(): ProxyRequests;
  /** Returns whether the proxy accepts new connections. */
  isServing(): boolean;
}

type Done = { status?: ProxyStatus; requests?: ProxyRequests };

/** Performs a request of the control plane. The disk is written first, so that a restart never knows less than was confirmed. */
async function perform(parts: ControlParts, request: ControlRequest): Promise<Done> {
  switch (request.do) {
    case 'set': {
      const { serviceId, generation, routes } = request;
      parts.table.check({ serviceId, generation, routes });
      parts.files.write({ serviceId, generation, routes });
      parts.table.set({ serviceId, generation, routes });
      return {};
    }
    case 'remove':
      parts.files.delete(request.serviceId);
      parts.table.remove(request.serviceId);
      return {};
    case 'drained':
      await parts.upstreams.drained(request.upstreams, request.timeoutMs);
      return {};
    case 'requests':
      return { requests: parts.requests() };
    case 'status':
      return { status: parts.status() };
  }
}

async function answer(parts: ControlParts, request: IncomingMessage): Promise<ControlAnswer> {
  try {
    const done = await perform(parts, JSON.parse(await text(request)) as ControlRequest);
    return { ok: true, serving: parts.isServing(), ...done };
  } catch (error) {
    const known = error instanceof RuntimeError && (error.code === 'superseded' || error.code === 'refused');
    const code = known ? (error.code as 'refused') : 'failed';
    return { ok: false, serving: parts.isServing(), code, message: (error as Error).message };
  }
}

/** Creates the server on the control socket: JSON over HTTP, open to every process that may read the proxy's folder. */
export function createControlServer(parts: ControlParts): Server {
  return createServer((request, response) => {
    void answer(parts, request).then((result) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result));
    });
  });
}
