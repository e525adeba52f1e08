import type { Pod } from '../kinds.ts';
import type { MetricSample } from './prometheus-text.ts';
import type { Totals } from './totals.ts';

/** Kinds of objects that lead to a service. */
export type RouteKind = 'HTTPRoute' | 'GRPCRoute' | 'Ingress';

/** Kubernetes service that a route leads to. */
export interface Backend {
  kind: RouteKind;
  namespace: string;
  service: string;
  port: number;
}

/** Program that leads requests to pods, and counts them in metrics in the text form of Prometheus. */
export interface GatewayProgram {
  name: string;
  /** Names of its controller in GatewayClasses and IngressClasses. */
  controllers: readonly string[];
  /** Selector of its pods. */
  selector: string;
  /** Name of a metric that it always tells, also before the first request. */
  mark: string;
  /** Beginnings of the names of the metrics that count requests. */
  prefixes: string[];
  /** Returns the port and the path of a pod's metrics. */
  metricsOf(pod: Pod): { port: number; path: string };
  /** Returns the name that its metrics have for a backend. */
  nameOf(backend: Backend): string;
  /** Returns the backend that a sample is about; undefined for other samples. */
  backendOf(sample: MetricSample): string | undefined;
  /** Adds a sample to the totals of its backend. */
  add(totals: Totals, sample: MetricSample): void;
}
