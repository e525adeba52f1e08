import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { environmentTarget } from '#resources/environment/index.ts';
import { readDefaultValues } from '#services/kinds/helm/default-values.ts';
import { HelmDefaultValuesRequest, KubernetesServiceList } from '#services/kinds/helm/schema.ts';
import type { RepositoryReader } from '#services/sources/repository.ts';
import { serviceTarget } from '#services/service/target.ts';

/** Endpoints that only Helm services have. */
export const helmRoutes = (repositories: RepositoryReader): Route[] => [
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
    handler: (call) => readDefaultValues(call, repositories, call.target.organizationId, call.body.source),
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
    // No present runtime applies charts, so that there are no Kubernetes services to list.
    readsOnlyTarget: true,
    handler: () => ({ results: [] }),
  }),
];
