/**
 * The reverse proxy of a node, as runtimes see it (design/engine.md, *Routing*). It runs as a process of its own with its last
 * routes on disk, so that traffic flows while the control plane restarts.
 */
export interface Upstream {
  /** Address of an instance: `127.0.0.1`, or that of its network namespace or container. */
  address: string;
  port: number;
}

export interface RouteEntry {
  host: string;
  protocol: 'HTTP' | 'GRPC';
  upstreams: Upstream[];
}

export interface Router {
  /**
   * Replaces the routes of one service, atomically and idempotently. Returns when new requests go to the new upstreams.
   * A lower generation than the present one is refused (throws RuntimeError `superseded`).
   */
  set(serviceId: string, generation: number, routes: RouteEntry[]): Promise<void>;

  /** Waits until no request is under way to the given upstreams (port 0: to any of their ports), at most `timeoutMs`. */
  drained(upstreams: Upstream[], timeoutMs: number): Promise<void>;

  /** Removes the routes of a service; requests to its hosts answer 404 from then on. */
  remove(serviceId: string): Promise<void>;

  /** Port that the proxy listens on (HTTP), for the URLs that people are shown. */
  readonly port: number;
}
