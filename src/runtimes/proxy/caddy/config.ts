import { join } from 'node:path';
import { isIPv6 } from 'node:net';
import { ADMIN_HOST, ADMIN_SOCKET } from '#runtimes/proxy/caddy/admin.ts';
import { COUNTED, requestLog, requestLogs, UNCOUNTED } from '#runtimes/proxy/caddy/request-log.ts';
import type { CaddyFeatures } from '#runtimes/proxy/caddy/program.ts';
import type { ProxyLimits } from '#runtimes/proxy/limits.ts';
import type { OwnedRoute } from '#runtimes/proxy/route-files.ts';
import type { RouteEntry, Upstream } from '#runtimes/router.ts';

/** HTTPS of the proxy, for hosts that ask for a certificate. */
export interface HttpsOptions {
  port: number;
  /** Directory of the authority that issues certificates (ACME, RFC 8555). */
  directoryUrl: string;
  /** Address that the authority may write to; empty for none. */
  email: string;
  /** PEM file with the roots that verify the directory's own certificate; empty for those of the machine. */
  rootsFile: string;
  /** Milliseconds between two checks for certificates that are due for renewal (default 10 min). */
  renewCheckMs?: number;
}

/** Input of a configuration. */
export interface ConfigInput {
  /** Unique name of this configuration among all that are ever loaded. */
  revision: string;
  /** Folder of the adapter: socket, storage, log. */
  directory: string;
  host: string;
  port: number;
  /** HTTPS options; null if HTTPS cannot be listened on: hosts with certificates are served over HTTP then. */
  https: HttpsOptions | null;
  /** Networks of proxies in front of this one, CIDR. */
  trustedProxies: readonly string[];
  features: CaddyFeatures;
  /** True if reports of Go's HTTP server are written to `serverLog`. */
  reportsServer: boolean;
  limits: ProxyLimits;
  routes: readonly OwnedRoute[];
  /** Upstreams without a route that still have requests; Caddy counts only upstreams in its configuration. */
  retiring: readonly string[];
}

/** Name of an upstream in configuration and counts. */
export const dialOf = ({ address, port }: Upstream): string => `${bracketed(address)}:${port}`;

/** Returns an address in the form that precedes a port. */
export const bracketed = (address: string): string => (isIPv6(address) ? `[${address}]` : address);

/** Returns the file with Caddy's events about certificates, a JSON object per line. */
export const certificateLog = (directory: string): string => join(directory, 'certificates.log');
/** Returns the file with the reports of Go's HTTP server about connections: panics while a request was served, failed TLS handshakes. */
export const serverLog = (directory: string): string => join(directory, 'server.log');
export const storageFolder = (directory: string): string => join(directory, 'storage');

/** Number of attempts for a request whose upstream refuses the connection: another upstream is next in turn. */
const RETRIES = 3;
const RETRY_INTERVAL_MS = 25;
/** Maximum number of bytes in the head of an answer. */
const ANSWER_HEAD_BYTES = 64 << 10;
/** Milliseconds for which WebSockets outlive the configuration under which they were opened. */
const STREAM_CLOSE_DELAY_MS = 24 * 3_600_000;

/** Port on which visitors reach HTTPS, whatever port it is forwarded to: authorities connect to no other. */
const PUBLIC_HTTPS_PORT = 443;

const milliseconds = (value: number): string => `${value}ms`;

/** Returns the configuration of Caddy as its admin API takes it. */
export function buildConfig(input: ConfigInput): object {
  const { revision, directory, https } = input;
  const secure = https ? [...new Set(input.routes.filter((route) => route.certificate).map(({ host }) => host))] : [];
  return {
    admin: {
      '@id': revision,
      listen: `unix/${ADMIN_SOCKET}`,
      origins: [ADMIN_HOST],
      // The adapter keeps the configuration itself: Caddy does not write its copy atomically.
      config: { persist: false },
    },
    storage: { module: 'file_system', root: storageFolder(directory) },
    logging: loggingOf(directory, input.reportsServer),
    apps: {
      http: {
        http_port: input.port,
        // Set only while a server listens on it: every process reads from it whether HTTPS is served.
        ...(https && secure.length > 0 ? { https_port: https.port } : {}),
        servers: {
          http: httpServer(input, new Set(secure)),
          ...(https && secure.length > 0 ? { https: httpsServer(input, https, secure) } : {}),
        },
      },
      ...(https && secure.length > 0 ? { tls: tlsApp(https, input.port, secure) } : {}),
    },
  };
}

const rolledFile = (filename: string) => ({
  output: 'file',
  filename,
  roll_size_mb: 1,
  roll_keep: 1,
  roll_gzip: false,
});

/** Requests are logged without what visitors send: their paths may carry secrets. */
const loggingOf = (directory: string, reportsServer: boolean) => ({
  logs: {
    default: {
      writer: { output: 'stderr' },
      encoder: { format: 'json' },
      level: 'WARN',
      exclude: ['http.log', 'http.handlers', 'http.acme_client', 'tls'],
    },
    certificates: {
      writer: rolledFile(certificateLog(directory)),
      encoder: { format: 'json' },
      level: 'INFO',
      // The answers of authorities to challenges are logged under the part that solves them.
      include: ['tls', 'http.acme_client'],
    },
    requests: requestLog(directory),
    ...(reportsServer ? { server: serverReports(directory) } : {}),
  },
});

/** Log settings for everything that Go's server reports, which Caddy logs at the lowest level, panics included. */
const serverReports = (directory: string) => ({
  writer: rolledFile(serverLog(directory)),
  encoder: { format: 'json' },
  level: 'DEBUG',
  include: ['http.stdlib'],
});

function httpServer(input: ConfigInput, secure: ReadonlySet<string>) {
  const redirected = input.https && secure.size > 0 ? [redirectToHttps([...secure])] : [];
  const plain = input.routes.filter(({ host }) => !secure.has(host));
  // Only gRPC needs HTTP/2 without TLS; with it Caddy also accepts the upgrade from HTTP/1.1.
  const takesHttp2 = plain.some(({ protocol }) => protocol === 'GRPC');
  return {
    ...serverBase(input, input.port),
    logs: requestLogs(plain),
    protocols: ['h1', ...(takesHttp2 ? ['h2c'] : [])],
    automatic_https: { disable: true },
    routes: [
      { handle: [UNCOUNTED] },
      ...refusals(),
      withoutUpgrade(),
      ...visitorRoutes(input, input.port),
      ...redirected,
      ...hostRoutes(input, plain),
      unknownHost(),
      ...retiringRoutes(input),
    ],
  };
}

function httpsServer(input: ConfigInput, https: HttpsOptions, secure: readonly string[]) {
  const hosts = new Set(secure);
  const routes = input.routes.filter(({ host }) => hosts.has(host));
  return {
    ...serverBase(input, https.port),
    logs: requestLogs(routes),
    protocols: ['h1', 'h2', ...(input.features.http3 ? ['h3'] : [])],
    automatic_https: { disable: true },
    // The handshake fails for a name without a certificate.
    tls_connection_policies: [{ match: { sni: secure } }],
    strict_sni_host: true,
    routes: [
      { handle: [UNCOUNTED] },
      ...refusals(),
      withoutUpgrade(),
      ...visitorRoutes(input, PUBLIC_HTTPS_PORT),
      ...hostRoutes(input, routes),
      unknownHost(),
    ],
  };
}

const serverBase = ({ host, limits }: ConfigInput, port: number) => ({
  listen: [`${bracketed(host)}:${port}`],
  read_header_timeout: milliseconds(limits.headMs),
  idle_timeout: milliseconds(limits.idleMs),
  max_header_bytes: limits.headBytes,
  errors: { routes: [{ handle: [unreachable()] }] },
});

const tlsApp = (https: HttpsOptions, httpPort: number, secure: readonly string[]) => ({
  certificates: { automate: secure },
  automation: {
    policies: [
      {
        issuers: [
          {
            module: 'acme',
            ca: https.directoryUrl,
            ...(https.email ? { email: https.email } : {}),
            ...(https.rootsFile ? { trusted_roots_pem_files: [https.rootsFile] } : {}),
            challenges: { http: { alternate_port: httpPort }, 'tls-alpn': { alternate_port: https.port } },
          },
        ],
      },
    ],
    ...(https.renewCheckMs ? { renew_interval: milliseconds(https.renewCheckMs) } : {}),
  },
});

/** Pattern of the host names that `builtin/admission.ts` accepts: an upstream may build links from any other content of the field. */
const HOST = String.raw`(?i)^(?:[a-z0-9._~!$&'()*+,;=%<>-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$`;

/** Refuses tunnels, invalid host names, and upgrades with a body: an upstream may read the body as the first bytes of the new protocol. */
const refusals = (): object[] => [
  {
    match: [{ method: ['CONNECT'] }],
    terminal: true,
    handle: [own(405, 'The proxy opens no tunnels.', ENDS_CONNECTION)],
  },
  {
    match: [{ not: [{ header_regexp: { Host: { pattern: HOST } } }] }],
    terminal: true,
    handle: [own(400, 'A request has one Host header with a host name, and a port if need be.', ENDS_CONNECTION)],
  },
  {
    match: [{ header: { Upgrade: ['*'], 'Content-Length': ['*'] }, not: [{ header: { 'Content-Length': ['0'] } }] }],
    terminal: true,
    handle: [own(400, 'A request to upgrade the connection has no body.', ENDS_CONNECTION)],
  },
];

/** Removes the offer of HTTP/2 from requests: an upstream that accepted it would get a connection that Caddy does not read. */
const withoutUpgrade = (): object => ({
  match: [{ header: { Upgrade: ['h2c*'] } }],
  handle: [{ handler: 'headers', request: { delete: ['Upgrade', 'Connection', 'Http2-Settings'] } }],
});

/** Fields with which proxies name visitors, other than X-Forwarded-*: only this proxy may set them, and it sets none. */
const OF_PROXIES = ['Forwarded', 'X-Real-Ip', 'True-Client-Ip', 'X-Client-Ip', 'X-Cluster-Client-Ip', 'Client-Ip'];
/** Spellings of those fields with underscores, which many workloads treat as hyphens. */
const UNDERSCORED = [
  'X_Forwarded*',
  'X-Forwarded_*',
  'X_Real*',
  'X-Real_Ip',
  'True_Client*',
  'True-Client_Ip',
  'Client_Ip',
  'X_Client*',
  'X-Client_Ip',
  'X_Cluster*',
  'X-Cluster_*',
  'X-Cluster-Client_Ip',
];

/**
 * Removes the fields that only a proxy may set from visitors' requests, and keeps the port of X-Forwarded-Port. Caddy itself writes
 * X-Forwarded-For, -Proto and -Host.
 */
function visitorRoutes({ trustedProxies }: ConfigInput, port: number): object[] {
  const isForged = trustedProxies.length > 0 ? { match: [{ not: [{ remote_ip: { ranges: trustedProxies } }] }] } : {};
  return [
    { handle: [{ handler: 'headers', request: { delete: [...OF_PROXIES, ...UNDERSCORED] } }] },
    { ...isForged, handle: [{ handler: 'headers', request: { delete: ['X-Forwarded-*'] } }] },
    { handle: [{ handler: 'vars', forwarded_port: String(port) }] },
    {
      match: [{ header: { 'X-Forwarded-Port': ['*'] } }],
      handle: [{ handler: 'vars', forwarded_port: '{http.request.header.X-Forwarded-Port}' }],
    },
  ];
}

/** Builds a route for each host; several entries of one host share its requests among all their upstreams. */
function hostRoutes(input: ConfigInput, routes: readonly OwnedRoute[]): object[] {
  return [...Map.groupBy(routes, ({ host }) => host)].map(([host, entries]) => {
    const upstreams = entries.flatMap((entry) => entry.upstreams.map(dialOf));
    return {
      match: [{ host: [host, `${host}.`] }],
      terminal: true,
      handle: [COUNTED, upstreams.length > 0 ? forwardTo(input, entries[0]!.protocol, upstreams) : nothingServes()],
    };
  });
}

const forwardTo = (
  { trustedProxies, features, limits }: ConfigInput,
  protocol: RouteEntry['protocol'],
  upstreams: string[],
) => ({
  handler: 'reverse_proxy',
  upstreams: upstreams.map((dial) => ({ dial })),
  load_balancing: {
    selection_policy: { policy: 'round_robin' },
    retries: RETRIES,
    try_interval: milliseconds(RETRY_INTERVAL_MS),
  },
  headers: {
    request: {
      set: {
        'X-Forwarded-Port': ['{http.vars.forwarded_port}'],
        // Servers of gRPC may require the header; Caddy drops it as one of the visitor's connection.
        ...(protocol === 'GRPC' ? { Te: ['trailers'] } : {}),
      },
    },
  },
  ...(trustedProxies.length > 0 ? { trusted_proxies: trustedProxies } : {}),
  ...(features.keepsStreams ? { stream_close_delay: milliseconds(STREAM_CLOSE_DELAY_MS) } : {}),
  transport: {
    protocol: 'http',
    // Otherwise Caddy requests gzip from upstreams without a visitor's request, and unpacks it.
    compression: false,
    versions: protocol === 'GRPC' ? ['h2c', '2'] : ['1.1'],
    dial_timeout: milliseconds(limits.connectMs),
    response_header_timeout: milliseconds(limits.answerMs),
    max_response_header_size: ANSWER_HEAD_BYTES,
  },
});

/** Name of the route of retiring upstreams. */
export const RETIRING = 'retiring';

/** Route behind the one that answers every request: it only makes Caddy continue to count. */
const retiringRoutes = ({ retiring }: ConfigInput): object[] =>
  retiring.length === 0
    ? []
    : [{ '@id': RETIRING, handle: [{ handler: 'reverse_proxy', upstreams: retiring.map((dial) => ({ dial })) }] }];

/** Redirects a name with a final dot to the name without: browsers ask for the certificate of that name. */
const redirectToHttps = (hosts: string[]): object => ({
  match: [
    {
      host: hosts.flatMap((host) => [host, `${host}.`]),
      header_regexp: { Host: { name: 'name', pattern: String.raw`^(.*?)\.?(?::\d*)?$` } },
    },
  ],
  terminal: true,
  handle: [
    {
      handler: 'static_response',
      status_code: 308,
      headers: { Location: ['https://{http.regexp.name.1}{http.request.uri}'] },
    },
  ],
});

/**
 * Header that ends connections, HTTP/2 included (GOAWAY). Version 2.6 continues to serve connections without TLS under the configuration
 * under which they were opened, whose hosts and upstreams may have changed.
 */
const ENDS_CONNECTION = { Connection: ['close'] };

/** Builds an answer of the proxy itself. */
const own = (status: number | string, body: string, headers: Record<string, string[]> = {}): object => ({
  handler: 'static_response',
  status_code: status,
  headers: {
    'Content-Type': ['text/plain; charset=utf-8'],
    'Cache-Control': ['no-store'],
    'X-Content-Type-Options': ['nosniff'],
    ...headers,
  },
  body: `${body}\n`,
});

const unknownHost = (): object => ({
  terminal: true,
  handle: [own(404, 'There is no service at {http.request.host}.', ENDS_CONNECTION)],
});

const nothingServes = (): object =>
  own(503, 'The service at {http.request.host} has no running instance.', { ...ENDS_CONNECTION, 'Retry-After': ['1'] });

/** Builds the answer to a request that no upstream answered. */
const unreachable = (): object =>
  own('{http.error.status_code}', 'The service at {http.request.host} does not answer.', {
    ...ENDS_CONNECTION,
    'Retry-After': ['1'],
  });
