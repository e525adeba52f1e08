import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

/** A request on the control socket of the proxy (JSON in the body of a POST). Each may be sent twice without harm. */
export type ControlRequest =
  | { do: 'set'; serviceId: string; generation: number; routes: RouteEntry[] }
  | { do: 'remove'; serviceId: string }
  | { do: 'drained'; upstreams: Upstream[]; timeoutMs: number }
  | { do: 'status' };

/** `serving`: it takes new connections; one that is just starting, or that was replaced, does not. */
export type ControlAnswer =
  | { ok: true; serving: boolean; status?: ProxyStatus }
  | { ok: false; serving: boolean; code: 'superseded' | 'refused' | 'failed'; message: string };

/** What the proxy was started with; another control plane takes a running proxy over only if all of it is the same. */
export interface ProxyConfig {
  host: string;
  /** 0 lets the proxy choose one, which it keeps from then on. */
  port: number;
  /** Names the program (`fingerprintOf` in fingerprint.ts), so that a newer release replaces the proxy of an older one. */
  revision: string;
  /** How long requests and websockets under way may take once another proxy has taken its place, in milliseconds. */
  retireMs: number;
  limits: ProxyLimits;
  /** Addresses and networks (CIDR) whose `X-Forwarded-*` headers count. */
  trustedProxies: string[];
}

export interface ProxyStatus {
  config: ProxyConfig;
  pid: number;
  /** The port that it listens on. */
  port: number;
  services: number;
  /** Visitors' connections that it takes at once: fewer than its limits say where it may open fewer files. */
  connections: number;
  /** Requests under way. */
  underWay: number;
}

/**
 * Name of a proxy's control socket in the folder. There is one for each process: while one takes the place of another, both are
 * told what changes, because the one that retires still answers on the connections that it has.
 */
export const controlSocket = (pid: number): string => `control-${pid}`;

/** Names of control sockets among those of a folder, those of processes that are gone included. */
export const controlSockets = (names: string[]): string[] => names.filter((name) => /^control-\d+$/.test(name));

/** How the line begins by which the proxy says that it is up. */
export const UP = 'listening';

/** Tells the proxy that another one has taken its place. */
export const RETIRE = 'SIGUSR2';

/** Name of an upstream. */
export const upstreamKey = ({ address, port }: Upstream): string => `${address}:${port}`;
