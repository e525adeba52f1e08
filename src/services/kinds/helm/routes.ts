import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { readDefaultValues } from '#services/kinds/helm/default-values.ts';
import { HelmDefaultValuesRequest, KubernetesServiceList } from '#services/kinds/helm/schema.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';
import { clusterOf, serviceTarget, type ServiceTarget } from '#services/service/target.ts';
import type { Handle } from '#runtimes/runtime.ts';

/** Endpoints that only Helm services have. */
export const helmRoutes = (needs: Pick<ServiceNeeds, 'repositories' | 'runtimeOf'>): Route[] => [
  defineRoute({
    id: 'createHelmDefaultValues',
    method: 'POST',
    path: '/environment/{environmentId}/helmDefaultValues',
    tag: 'Helms',
    summary: 'Read the values that a chart has by itself',
    description: 'Reads the chart of the body from its repository and answers its values as YAML. Nothing is stored.',
    target: environmentTarget,
    action: 'environment.read',
    body: HelmDefaultValuesRequest,
    answer: { status: 201, body: Type.String(), contentType: 'text/plain; charset=utf-8' },
    errors: [502],
    transaction: false,
    handler: (call) => readDefaultValues(call, needs.repositories, call.target.organizationId, call.body.source),
  }),
  defineRoute({
    id: 'getHelmKubernetesServices',
    method: 'GET',
    path: '/helm/{helmId}/listServices',
    tag: 'Helm Main Calls',
    summary: 'List the Kubernetes services that the chart has made',
    description: 'Answers what is on the cluster now, so that ports can be published by name.',
    target: serviceTarget('helmId', 'Helm', 'HELM'),
    action: 'service.read',
    answer: { status: 200, body: KubernetesServiceList },
    errors: [502],
    transaction: false,
    handler: async (call) => ({ results: await listServices(needs, call.target) }),
  }),
];

/** Returns the Kubernetes services of a chart; none before it was deployed. Throws 502 if its cluster does not answer. */
async function listServices({ runtimeOf }: Pick<ServiceNeeds, 'runtimeOf'>, service: ServiceTarget) {
  if (service.handle === null) return [];
  const runtime = await runtimeOf(clusterOf(service));
  const found = (await runtime.chartServices?.(service.handle as unknown as Handle)) ?? [];
  return found.map(({ name, type, ports, selectors }) => ({
    metadata: { name },
    service_spec: { type, ports, selectors },
  }));
}
