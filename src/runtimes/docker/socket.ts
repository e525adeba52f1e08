import { request } from '#kernel/node-http.ts';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Milliseconds in which an engine must answer to be chosen. */
const PING_TIMEOUT_MS = 1000;

/** Port of engines without TLS. */
export const DEFAULT_PORT = '2375';
export const HTTP = ['tcp:', 'http:'];

/** Addresses at which Docker and Podman may be found: only `DOCKER_HOST` if it is set, else the usual sockets in this order. */
export function engineCandidates(env: Record<string, string | undefined>): string[] {
  const configured = env['DOCKER_HOST'];
  if (configured) return [configured.replace(/^unix:\/\//, '')];
  const home = env['HOME'] ?? homedir();
  const user = process.getuid?.();
  const runtimeDirectory = env['XDG_RUNTIME_DIR'] ?? (user === undefined ? undefined : `/run/user/${user}`);
  return [
    '/var/run/docker.sock',
    ...(runtimeDirectory ? [join(runtimeDirectory, 'docker.sock')] : []),
    join(home, '.docker/run/docker.sock'),
    join(home, '.docker/desktop/docker.sock'),
    join(home, '.colima/default/docker.sock'),
    join(home, '.orbstack/run/docker.sock'),
    '/run/podman/podman.sock',
    ...(runtimeDirectory ? [join(runtimeDirectory, 'podman/podman.sock')] : []),
  ];
}

/**
 * Finds an engine that answers within a second, by `DOCKER_HOST` or in the usual places. Returns the path of its unix socket, or its
 * `tcp://host:port` if `DOCKER_HOST` says so; null if there is none, or if `DOCKER_HOST` is of another kind (ssh).
 */
export async function findDockerSocket(env: Record<string, string | undefined>): Promise<string | null> {
  const candidates = engineCandidates(env);
  const answers = await Promise.all(candidates.map(answersPing));
  return candidates[answers.indexOf(true)] ?? null;
}

/** Returns the engine that answers, as a client of it takes its address; null if there is none. */
export async function addressOfEngine(
  dockerHost: string | undefined,
): Promise<{ host: string } | { socketPath: string } | null> {
  const found = await findDockerSocket({ DOCKER_HOST: dockerHost });
  if (!found) return null;
  return HTTP.some((protocol) => found.startsWith(protocol)) ? { host: found } : { socketPath: found };
}

function answersPing(address: string): Promise<boolean> {
  const target = addressOf(address);
  if (!target) return Promise.resolve(false);
  return new Promise((resolve) => {
    const sent = request({ ...target, path: '/_ping', timeout: PING_TIMEOUT_MS, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', () => resolve(false));
    sent.on('close', () => resolve(false));
    sent.end();
  });
}

function addressOf(address: string): { socketPath: string } | { host: string; port: string } | null {
  if (address.startsWith('/')) return { socketPath: address };
  const url = URL.parse(address);
  return url && HTTP.includes(url.protocol) ? { host: url.hostname, port: url.port || DEFAULT_PORT } : null;
}
