import { publishedPorts, type WorkloadIdentity, type WorkloadSpec } from '#runtimes/runtime.ts';
import type { ClusterObject } from './kinds.ts';
import { LABEL, identityLabels, namespaceOf } from './labels.ts';

/** Returns the rule that pods are reached from their own environment only. The cluster's network plugin has to enforce it. */
export function environmentPolicy(identity: WorkloadIdentity): ClusterObject {
  const { [LABEL.service]: _service, ...labels } = identityLabels(identity);
  return policyOf({ name: 'environment', namespace: namespaceOf(identity), labels }, {}, [
    { from: [{ podSelector: {} }] },
  ]);
}

/** Returns the rule that public ports are reached from everywhere: ingress controllers and load balancers are outside of the namespace. */
export function publicPolicy({ identity, hostname, ports, routes }: WorkloadSpec): ClusterObject {
  const routed = ports.filter(({ id }) => routes.some(({ portId }) => portId === id));
  const open = [...routed, ...publishedPorts(ports)];
  const metadata = { name: hostname, namespace: namespaceOf(identity), labels: identityLabels(identity) };
  const selector = { matchLabels: { [LABEL.service]: identity.serviceId } };
  return policyOf(metadata, selector, [
    {
      ports: open.map(({ internalPort, protocol }) => ({
        port: internalPort,
        protocol: protocol === 'UDP' ? 'UDP' : 'TCP',
      })),
    },
  ]);
}

/** Port on which cert-manager's pods answer the challenges of an authority. */
const SOLVER_PORT = 8089;

/** Returns the rule that the pods by which cert-manager proves a domain are reached from everywhere. */
export const solverPolicy = ({ identity, hostname }: Pick<WorkloadSpec, 'identity' | 'hostname'>): ClusterObject =>
  policyOf(
    { name: `${hostname}-acme`, namespace: namespaceOf(identity), labels: identityLabels(identity) },
    { matchLabels: { 'acme.cert-manager.io/http01-solver': 'true' } },
    [{ ports: [{ port: SOLVER_PORT, protocol: 'TCP' }] }],
  );

export const policyOf = (
  metadata: ClusterObject['metadata'],
  podSelector: object,
  ingress: object[],
): ClusterObject => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata,
  spec: { podSelector, policyTypes: ['Ingress'], ingress },
});
