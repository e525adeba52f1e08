import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';

/** Milliseconds in which an engine must answer to be taken. */
const PING_TIMEOUT_MS = 1000;

export interface EngineAddress {
  /** Path of the engine's unix socket. */
  socketPath?: string;
  /** `tcp://host:port` or `http://host:port` of an engine elsewhere. */
  host?: string;
}

/** The sockets that Docker and Podman use, most specific first; `DOCKER_HOST` stands before all of them. */
export function socketCandidates(env: Record<string, string | undefined>): string[] {
  const configured = env['DOCKER_HOST'];
  if (configured) return configured.startsWith('unix://') ? [configured.slice('unix://'.length)] : [];
  const home = env['HOME'] ?? homedir();
  const runtimeDirectory = env['XDG_RUNTIME_DIR'];
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
 * The socket of an engine that answers, found by `DOCKER_HOST` or in the usual places; null if there is none.
 * A `DOCKER_HOST` that isn't a unix socket is null too: pass it as `host`.
 */
export async function findDockerSocket(env: Record<string, string | undefined>): Promise<string | null> {
  const candidates = socketCandidates(env);
  const answers = await Promise.all(candidates.map(answersPing));
  return candidates[answers.indexOf(true)] ?? null;
}

function answersPing(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request({ socketPath, path: '/_ping', timeout: PING_TIMEOUT_MS, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', () => resolve(false));
    sent.on('close', () => resolve(false));
    sent.end();
  });
}

/** A client of the engine. Throws when neither or both addresses are given, or `host` isn't one. */
export function connect(address: EngineAddress): Docker {
  if ((address.socketPath === undefined) === (address.host === undefined))
    throw new Error('Docker runtime: give either `socketPath` or `host`.');
  if (address.socketPath !== undefined) return new Docker({ socketPath: address.socketPath });
  const url = new URL(address.host!);
  if (!['tcp:', 'http:'].includes(url.protocol))
    throw new Error(`Docker runtime: ${address.host} is not of the form tcp://host:port.`);
  return new Docker({ host: url.hostname, port: url.port || '2375', protocol: 'http' });
}
