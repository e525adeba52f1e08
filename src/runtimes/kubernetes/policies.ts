import type { WorkloadIdentity, WorkloadSpec } from '#runtimes/runtime.ts';
import type { ClusterObject } from './kinds.ts';
import { LABEL, identityLabels, namespaceOf } from './labels.ts';

/** Returns the rule that pods are reached from their own environment only. The cluster's network plugin has to enforce it. */
export function environmentPolicy(identity: WorkloadIdentity): ClusterObject {
  const { [LABEL.service]: _service, ...labels } = identityLabels(identity);
  return policyOf({ name: 'environment', namespace: namespaceOf(identity), labels }, {}, [
    { from: [{ podSelector: {} }] },
  ]);
}

/** Returns the rule that ports behind routes are reached from everywhere: the ingress controller is in another namespace. */
export function publicPolicy({ identity, hostname, ports, routes }: WorkloadSpec): ClusterObject {
  const routed = ports.filter(({ id }) => routes.some(({ portId }) => portId === id));
  const metadata = { name: hostname, namespace: namespaceOf(identity), labels: identityLabels(identity) };
  const selector = { matchLabels: { [LABEL.service]: identity.serviceId } };
  return policyOf(metadata, selector, [
    { ports: routed.map(({ internalPort }) => ({ port: internalPort, protocol: 'TCP' })) },
  ]);
}

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
