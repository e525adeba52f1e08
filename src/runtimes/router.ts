/**
 * Reverse proxy of a node, as runtimes see it. It runs as a process of its own with its last routes on disk, so that traffic
 * flows while the control plane restarts. Two adapters implement it: `proxy/builtin` and `proxy/caddy`.
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
  /**
   * True if the proxy obtains and renews a certificate for the host. Only validated custom domains ask for one; absent is
   * false. A proxy without HTTPS serves the host over HTTP and reports `UNSUPPORTED`.
   */
  certificate?: boolean;
}

/** State of the certificate of one host. */
export interface CertificateStatus {
  host: string;
  /** `UNSUPPORTED`: this node's proxy obtains no certificates. */
  state: 'UNSUPPORTED' | 'PENDING' | 'ISSUED' | 'FAILED';
  /** End of validity of the present certificate, in milliseconds since 1970; null without one. */
  expiresAt: number | null;
  /** Reason of the last failed attempt, for people; null if the last attempt succeeded or none was made. */
  lastError: string | null;
}

/** Requests to a service that were answered, or given up by their visitors. Requests for a WebSocket are left out. */
export interface ServiceRequests {
  serviceId: string;
  /** Numbers of answers by the hundreds of their status, 1xx to 5xx. A visitor who left before the answer counts as 4xx. */
  statuses: number[];
  /** Numbers of answers by their time, in the classes of `LATENCY_BOUNDS_MS`. A time goes from the head of a request to the last byte. */
  latencies: number[];
}

/** Requests of a time. */
export interface RequestCounts {
  /** Length of the time in seconds. */
  seconds: number;
  /** Services with routes, whether it had requests or not. */
  services: ServiceRequests[];
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

  /** Certificates of the given hosts, one entry per host in their order. */
  certificates(hosts: string[]): Promise<CertificateStatus[]>;

  /**
   * Requests since the last call in any process of this machine: none is counted twice. Null where that call is unknown or minutes ago.
   * Throws RuntimeError `failed` if the proxy does not answer.
   */
  requests(): Promise<RequestCounts | null>;

  /** Port that the proxy listens on (HTTP), for the URLs that people are shown. */
  readonly port: number;
}

/** Answer of `Router.certificates` for a proxy that obtains none. */
export const unsupportedCertificates = (hosts: string[]): CertificateStatus[] =>
  hosts.map((host) => ({ host, state: 'UNSUPPORTED', expiresAt: null, lastError: null }));
