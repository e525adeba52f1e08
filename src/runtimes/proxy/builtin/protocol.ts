import type { Tally } from '#runtimes/tools/tally.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

/** Request on the control socket of the proxy (JSON in the body of a POST). Each may be sent twice without harm. */
export type ControlRequest =
  | { do: 'set'; serviceId: string; generation: number; routes: RouteEntry[] }
  | { do: 'remove'; serviceId: string }
  | { do: 'drained'; upstreams: Upstream[]; timeoutMs: number }
  | { do: 'requests' }
  | { do: 'status' };

/** Answer on the control socket. `serving`: the proxy accepts new connections; one that is just starting, or was replaced, does not. */
export type ControlAnswer =
  | { ok: true; serving: boolean; status?: ProxyStatus; requests?: ProxyRequests }
  | { ok: false; serving: boolean; code: 'superseded' | 'refused' | 'failed'; message: string };

/** Settings that the proxy was started with. Another control plane adopts a running proxy only if they are all equal. */
export interface ProxyConfig {
  host: string;
  /** Port to listen on; 0 lets the proxy choose one, which it keeps from then on. */
  port: number;
  /** Name of the program (`fingerprintOf` in fingerprint.ts), so that a newer release replaces the proxy of an older one. */
  revision: string;
  /** Milliseconds for requests and websockets under way once another proxy has replaced this one. */
  retireMs: number;
  limits: ProxyLimits;
  /** Addresses and networks (CIDR) whose `X-Forwarded-*` headers count. */
  trustedProxies: string[];
}

export interface ProxyStatus {
  config: ProxyConfig;
  pid: number;
  /** Port on which the proxy listens. */
  port: number;
  services: number;
  /** Number of concurrent connections of visitors: below the configured limit if the proxy may open fewer files. */
  connections: number;
  /** Number of requests under way. */
  underWay: number;
}

/** Requests that one process of the proxy has counted since its start. */
export interface ProxyRequests {
  /** Name of the process among all that ever run. */
  run: string;
  services: [serviceId: string, tally: Tally][];
}

/**
 * Returns the name of a proxy's control socket in the folder. Each process has its own: during a replacement both proxies receive changes,
 * because the retiring one still answers on its connections.
 */
export const controlSocket = (pid: number): string => `control-${pid}`;

/** Filters the names of a folder for control sockets, including those of ended processes. */
export const controlSockets = (names: string[]): string[] => names.filter((name) => /^control-\d+$/.test(name));

/** Prefix of the line in which the proxy reports that it is up. */
export const UP = 'listening';

/** Signal that tells the proxy that another one has replaced it. */
export const RETIRE = 'SIGUSR2';

/** Returns the name of an upstream. */
export const upstreamKey = ({ address, port }: Upstream): string => `${address}:${port}`;
