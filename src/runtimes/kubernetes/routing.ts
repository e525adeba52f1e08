import type { WorkloadSpec } from '#runtimes/runtime.ts';
import type { Extensions } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { metadataOf } from './metadata.ts';
import { publicPolicy } from './policies.ts';

/** Returns the objects by which a release is reached from outside. */
export function routesOf(spec: WorkloadSpec, extensions: Extensions): ClusterObject[] {
  if (spec.routes.length === 0) return [];
  return [ingressOf(spec, extensions), publicPolicy(spec)];
}

const ingressOf = (spec: WorkloadSpec, { ingressClass }: Extensions): ClusterObject => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: metadataOf(spec, spec.hostname, 'INGRESS'),
  spec: {
    ...(ingressClass === null ? {} : { ingressClassName: ingressClass }),
    rules: spec.routes.map(({ host, portId }) => ({
      host,
      http: {
        paths: [
          {
            path: '/',
            pathType: 'Prefix',
            backend: { service: { name: spec.hostname, port: { number: portOf(spec, portId) } } },
          },
        ],
      },
    })),
  },
});

const portOf = ({ ports }: WorkloadSpec, id: string): number => ports.find((port) => port.id === id)!.internalPort;
