import Docker from 'dockerode';
import { DEFAULT_PORT, HTTP } from './socket.ts';
import { limitCalls } from './time-limits.ts';

export interface EngineAddress {
  /** Path of the engine's unix socket. */
  socketPath?: string;
  /** `tcp://host:port` or `http://host:port` of a remote engine. */
  host?: string;
}

/** Creates a client of the engine whose calls have time limits. Throws if neither or both addresses are given, or `host` is invalid. */
export function connect(address: EngineAddress): Docker {
  if ((address.socketPath === undefined) === (address.host === undefined))
    throw new Error('Docker runtime: give either `socketPath` or `host`.');
  if (address.socketPath !== undefined) return limitCalls(new Docker({ socketPath: address.socketPath }));
  const url = new URL(address.host!);
  if (!HTTP.includes(url.protocol))
    throw new Error(`Docker runtime: ${address.host} is not of the form tcp://host:port.`);
  return limitCalls(new Docker({ host: url.hostname, port: url.port || DEFAULT_PORT, protocol: 'http' }));
}
