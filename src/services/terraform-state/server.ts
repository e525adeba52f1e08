import { httpUrl } from '#platform/settings/address.ts';
import { createHash } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { AppError } from '#kernel/errors.ts';
import { isId } from '#kernel/ids.ts';
import { createServer } from '#kernel/node-http.ts';
import { toLockInfo } from '#services/terraform-state/lock-info.ts';
import {
  checkCredential,
  deleteState,
  Locked,
  lockState,
  NotLetIn,
  readState,
  unlockState,
  writeState,
  type RunCredential,
  type StateOwner,
  type StatePlatform,
  type StateRequest,
} from '#services/terraform-state/store.ts';

/** Largest state that is accepted. States of whole companies have some tens of megabytes. */
const STATE_LIMIT_BYTES = 64 * 1024 * 1024;
const LOCK_LIMIT_BYTES = 16 * 1024;

/** Server of Terraform's http backend. It has listeners of its own, because states are larger than any body of the API. */
export interface StateServer {
  /**
   * Returns the URL at which a run finds its state. `host` is an address of this machine that the run reaches; the server listens on it
   * from then on. Throws if this machine has no such address.
   */
  urlAt(host: string, owner: StateOwner): Promise<string>;
  /** Listens on an address of this machine. Throws if that is not possible; `urlAt` tries it again. */
  listen(host: string): Promise<void>;
  close(): Promise<void>;
}

/** Refused request without an AppError: a status and a sentence. */
class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Creates the server. `port` 0 chooses a free port, which is the same on every address from then on. `publicUrl` replaces scheme, host and
 * port of the URLs that runs get.
 */
export function createStateServer(
  platform: StatePlatform & { log: Logger },
  options: { port: number; publicUrl: string },
): StateServer {
  const listeners = new Map<string, Promise<Server>>();
  let { port } = options;
  const listen = async (host: string): Promise<Server> => {
    const server = createServer((request, response) => void answer(platform, request, response));
    server.requestTimeout = 120_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(unlistened(host, port, error)));
      server.listen(port, host, resolve);
    });
    port = (server.address() as AddressInfo).port;
    return server;
  };
  const listenOnce = async (host: string): Promise<void> => {
    const present = listeners.get(host);
    // One after another: the first decides the port.
    const listener = present ?? Promise.allSettled(listeners.values()).then(() => listen(host));
    if (!present) {
      listeners.set(host, listener);
      listener.catch(() => listeners.delete(host));
    }
    await listener;
  };
  return {
    listen: listenOnce,
    urlAt: async (host, owner) => {
      await listenOnce(host);
      const base = options.publicUrl || httpUrl(host, port);
      return `${base}/terraform-state/${owner.organizationId}/${owner.serviceId}`;
    },
    close: async () => {
      for (const listener of await Promise.allSettled(listeners.values()))
        if (listener.status === 'fulfilled') {
          const { value: server } = listener;
          const closed = new Promise((resolve) => server.close(resolve));
          server.closeIdleConnections();
          await closed;
        }
    },
  };
}

const unlistened = (host: string, port: number, cause: NodeJS.ErrnoException): Error =>
  new Error(
    cause.code === 'EADDRINUSE'
      ? `Another program listens on ${host}:${port}: set QUARTERDECK_TERRAFORM_STATE_PORT to a free port.`
      : `States of Terraform cannot be served on ${host}:${port} (${cause.code}): where the cluster's machine is another one, set QUARTERDECK_TERRAFORM_STATE_URL to an address that leads here.`,
    { cause },
  );

const PATH = /^\/terraform-state\/([^/?]+)\/([^/?]+)$/;

/** Reads state, credential and lock id of a request; undefined if the path or the credential is missing. */
function readRequest(request: IncomingMessage): (StateRequest & { lockId: string | null }) | undefined {
  const url = new URL(request.url ?? '/', 'http://state.invalid');
  const [, organizationId, serviceId] = PATH.exec(url.pathname) ?? [];
  if (!organizationId || !serviceId || !isId(organizationId) || !isId(serviceId)) return undefined;
  const credential = readBasic(request.headers.authorization);
  return credential && { owner: { organizationId, serviceId }, credential, lockId: url.searchParams.get('ID') };
}

function readBasic(header: string | undefined): RunCredential | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=_-]{1,1000})$/i.exec(header ?? '') ?? [];
  const [, user, password] = /^([^:]+):(.+)$/.exec(Buffer.from(encoded ?? '', 'base64').toString()) ?? [];
  return user && password ? { user, password } : undefined;
}

async function answer(
  platform: StatePlatform & { log: Logger },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const asked = readRequest(request);
    // The same answer for an unknown path and a wrong credential, so that clients cannot find out which services exist.
    if (!asked) throw new NotLetIn('no credential');
    await checkCredential(platform, asked);
    await carryOut(platform, request, response, asked);
  } catch (error) {
    refuse(platform, request, response, error as Error);
  }
}

async function carryOut(
  platform: StatePlatform,
  request: IncomingMessage,
  response: ServerResponse,
  asked: StateRequest & { lockId: string | null },
): Promise<void> {
  switch (request.method) {
    case 'GET': {
      const state = await readState(platform, asked);
      if (!state) return void response.writeHead(204).end();
      response.writeHead(200, { 'content-type': 'application/json', 'content-md5': md5(state) }).end(state);
      return;
    }
    case 'POST': {
      await writeState(platform, asked, asked.lockId, await readBody(request, STATE_LIMIT_BYTES));
      return void response.writeHead(200).end();
    }
    case 'DELETE':
      await deleteState(platform, asked, asked.lockId);
      return void response.writeHead(200).end();
    case 'LOCK': {
      const lock = toLockInfo(parse(await readBody(request, LOCK_LIMIT_BYTES)));
      if (!lock) throw new Refused(400, 'The body of a LOCK request must be a JSON object with an ID.');
      await lockState(platform, asked, lock);
      return void response.writeHead(200).end();
    }
    case 'UNLOCK': {
      const body = await readBody(request, LOCK_LIMIT_BYTES);
      const lock = body.length === 0 ? null : toLockInfo(parse(body));
      // force-unlock sends no lock information: then the held lock is released.
      await unlockState(platform, asked, lock?.ID ?? null);
      return void response.writeHead(200).end();
    }
    default:
      throw new Refused(405, 'GET, POST, DELETE, LOCK and UNLOCK are understood.');
  }
}

async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new Refused(413, `A state may have ${STATE_LIMIT_BYTES / 2 ** 20} MiB.`);
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const wanted = request.headers['content-md5'];
  if (wanted !== undefined && wanted !== md5(body))
    throw new Refused(400, 'Content-MD5 is that of another body: it was changed on its way.');
  return body;
}

const md5 = (content: Buffer): string => createHash('md5').update(content).digest('base64');

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

const STATUS: Partial<Record<AppError['code'], number>> = { bad_request: 400, conflict: 409, not_found: 404 };

function refuse({ log }: { log: Logger }, request: IncomingMessage, response: ServerResponse, error: Error): void {
  if (response.headersSent) return void response.destroy();
  const send = (status: number, body: object, headers: Record<string, string> = {}) => {
    // Closes the connection rather than wait for the rest of the body.
    if (!request.complete) headers.connection = 'close';
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
  // Terraform reads the lock from this very answer and shows it.
  if (error instanceof Locked) return send(423, error.lock);
  if (error instanceof NotLetIn)
    return send(
      401,
      { status: 401, error: 'Unauthorized', message: 'The credential of this run is not valid (any more).' },
      { 'www-authenticate': 'Basic realm="terraform-state"' },
    );
  const status =
    error instanceof Refused ? error.status : error instanceof AppError ? (STATUS[error.code] ?? 500) : 500;
  if (status >= 500) log.error({ err: error, method: request.method }, 'a request for a state of Terraform failed');
  send(status, { status, message: status >= 500 ? 'Internal server error.' : error.message });
}
