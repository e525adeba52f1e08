import { createServer } from '#kernel/node-http.ts';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/**
 * Small HTTP application that reports its environment. The fake runtime serves it in place of a user's application, and the runtime
 * contract puts it into the image that every real runtime runs, so that the same tests apply to both. It imports node modules only, because
 * the contract writes it into an image with its types stripped; its kernel module is written as `node:http` there by `contract/fixture.ts`.
 */
export interface ApplicationHost {
  environment: Record<string, string | undefined>;
  /** Name of the instance or machine, returned by `/`. */
  hostname: string;
  /** Differs between two processes of the same instance. */
  process: string;
  readFile(path: string): string;
  writeFile(path: string, text: string): void;
  log(text: string, stream: 'stdout' | 'stderr'): void;
  exit(code: number): void;
}

/** Returns the port that the application listens on: `PORT` if the runtime sets it, else 8080. */
export const applicationPort = (environment: ApplicationHost['environment']): number =>
  Number(environment['PORT'] ?? 8080);

/** Returns the reason why the application ends as soon as it starts (variable `FAIL_START`), null if it starts. */
export const startProblem = (environment: ApplicationHost['environment']): string | null =>
  environment['FAIL_START'] === undefined ? null : `cannot start: FAIL_START is ${environment['FAIL_START']}`;

/** Returns whether its health check passes; the variable `UNREADY` makes it fail for ever. */
export const isReady = (environment: ApplicationHost['environment']): boolean => environment['UNREADY'] === undefined;

type Answer = (host: ApplicationHost, query: URLSearchParams) => unknown;

const ANSWERS: Record<string, Answer> = {
  '/': (host) => ({
    hostname: host.hostname,
    process: host.process,
    release: host.environment['RELEASE'] ?? null,
  }),
  '/env': (host, query) => ({ value: host.environment[query.get('name') ?? ''] ?? null }),
  '/file': (host, query) => ({ content: host.readFile(query.get('path') ?? '') }),
  '/write': (host, query) => {
    host.writeFile(query.get('path') ?? '', query.get('text') ?? '');
    return { written: true };
  },
  '/fill': (host, query) => {
    host.writeFile(query.get('path') ?? '', 'x'.repeat(Number(query.get('bytes') ?? 0)));
    return { written: true };
  },
  '/say': (host, query) => {
    host.log(query.get('text') ?? '', query.get('stream') === 'stderr' ? 'stderr' : 'stdout');
    return { said: true };
  },
  '/exit': (host, query) => {
    setTimeout(() => host.exit(Number(query.get('code') ?? 1)), 20);
    return { exiting: true };
  },
};

/** Answers one request in JSON. Paths: `/`, `/healthz`, `/env`, `/file`, `/write`, `/fill`, `/say`, `/exit`, `/wait`, `/fetch`. */
export async function respond(
  host: ApplicationHost,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://application');
  if (url.pathname === '/healthz') return answer(response, isReady(host.environment) ? 200 : 503, {});
  try {
    if (url.pathname === '/wait') {
      await new Promise((resolve) => setTimeout(resolve, Number(url.searchParams.get('ms') ?? 0)));
      return answer(response, 200, { waited: true, release: host.environment['RELEASE'] ?? null });
    }
    if (url.pathname === '/fetch') {
      const fetched = await fetch(url.searchParams.get('url') ?? '', { signal: AbortSignal.timeout(3000) });
      return answer(response, 200, { status: fetched.status, body: await fetched.text() });
    }
    const reply = ANSWERS[url.pathname];
    if (!reply) return answer(response, 404, { error: `nothing at ${url.pathname}` });
    answer(response, 200, reply(host, url.searchParams));
  } catch (error) {
    answer(response, 500, { error: error instanceof Error ? error.message : String(error) });
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Creates a server of the application that does not listen yet. */
export function createApplication(host: ApplicationHost): Server {
  return createServer((request, response) => {
    void respond(host, request, response);
  });
}
