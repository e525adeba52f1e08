import type { Pod } from '../kinds.ts';
import type { Backend, GatewayProgram } from './gateway-program.ts';
import { parseNumber, type MetricSample } from './prometheus-text.ts';
import { addBucket, addStatus, type Totals } from './totals.ts';

/** Port of metrics in the chart of Traefik. */
const METRICS_PORT = 9100;

interface Ports {
  ports?: { name?: string; containerPort: number }[];
}

/** Counts of Traefik 3 for its services, each of which is a port of a Kubernetes service. */
export const TRAEFIK: GatewayProgram = {
  name: 'Traefik',
  controllers: ['traefik.io/gateway-controller', 'traefik.io/ingress-controller'],
  selector: 'app.kubernetes.io/name=traefik',
  mark: 'traefik_config_reloads_total',
  prefixes: ['traefik_service_requests_total', 'traefik_service_request_duration_seconds_bucket'],
  metricsOf: (pod) => ({ port: portOf(pod), path: '/metrics' }),
  nameOf: ({ kind, namespace, service, port }: Backend) => {
    if (kind === 'Ingress') return `${normalize(`${namespace}-${service}-${port}`)}@kubernetes`;
    const name = kind === 'GRPCRoute' ? `${service}-${port}-grpc` : `${service}-http-${port}`;
    return `${normalize(`${namespace}-${name}`)}@kubernetesgateway`;
  },
  // Machines leave web sockets out as well: they take as long as their visitors stay.
  backendOf: ({ labels }) => (labels.get('protocol') === 'websocket' ? undefined : labels.get('service')),
  add: (totals: Totals, { name, labels, value }: MetricSample) => {
    if (name === 'traefik_service_requests_total') addStatus(totals, statusOf(labels), value);
    else addBucket(totals, parseNumber(labels.get('le') ?? ''), value);
  },
};

/** Returns the port of metrics. The annotation that k3s gives its Traefik names another one, so that it comes second. */
function portOf({ spec, metadata }: Pod): number {
  const containers = (spec.containers ?? []) as Ports[];
  const named = containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === 'metrics');
  const annotated = Number(metadata.annotations?.['prometheus.io/port']);
  return named?.containerPort ?? (annotated > 0 && annotated < 65_536 ? Math.trunc(annotated) : METRICS_PORT);
}

/** Joins the letters and digits of a name as Traefik does. */
const normalize = (name: string): string =>
  name
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join('-');

/** Statuses of HTTP for those of gRPC from 0 on (`google.rpc.Code`). */
const STATUSES_OF_GRPC = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];

/** Returns the status of HTTP; of calls of gRPC Traefik tells that of gRPC. */
function statusOf(labels: Map<string, string>): number {
  const code = parseNumber(labels.get('code') ?? '');
  return labels.get('protocol')?.startsWith('grpc') ? (STATUSES_OF_GRPC[code] ?? code) : code;
}
