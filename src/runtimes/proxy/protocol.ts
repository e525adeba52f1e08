import type { RouteEntry, Upstream } from '#runtimes/router.ts';

/** A request on the control socket of the proxy (JSON in the body of a POST). Each may be sent twice without harm. */
export type ControlRequest =
  | { do: 'set'; serviceId: string; generation: number; routes: RouteEntry[] }
  | { do: 'remove'; serviceId: string }
  | { do: 'drained'; upstreams: Upstream[]; timeoutMs: number }
  | { do: 'status' };

export type ControlAnswer =
  { ok: true; status?: ProxyStatus } | { ok: false; code: 'superseded' | 'refused' | 'failed'; message: string };

/** What the proxy was started with; another control plane takes a running proxy over only if all of it is the same. */
export interface ProxyConfig {
  host: string;
  /** 0 lets the proxy choose one, which it keeps from then on. */
  port: number;
  /** Names the program text (`fingerprint` in index.ts), so that a newer release replaces the proxy of an older one. */
  revision: string;
}

export interface ProxyStatus {
  config: ProxyConfig;
  pid: number;
  /** The port that it listens on. */
  port: number;
  services: number;
  /** Requests under way. */
  underWay: number;
}

/** Name of the control socket in the proxy's folder. */
export const CONTROL_SOCKET = 'control';

/** Name of an upstream. */
export const upstreamKey = ({ address, port }: Upstream): string => `${address}:${port}`;
