import { invalidField, notFound } from '#kernel/errors.ts';
import { wholeList } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import { clusterTarget } from '#resources/cluster/index.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import * as schema from '#resources/platform-configuration/schema.ts';

const tag = 'Platform Configuration';
const TEMPLATES = '/organization/{organizationId}/platformTemplate';
const BINDING = '/organization/{organizationId}/cluster/{clusterId}/platformBinding';

const noTemplate = (): never => {
  throw notFound('Platform template');
};
const noBinding = (): never => {
  throw notFound('Platform binding');
};

/** Templates of what is installed in a cluster beside the services. This release has none: it installs nothing in clusters (decision 0043). */
export const platformConfigurationRoutes: Route[] = [
  defineRoute({
    id: 'listPlatformTemplates',
    method: 'GET',
    path: TEMPLATES,
    tag,
    summary: 'List the platform templates: none',
    description:
      'The list is empty: this release installs nothing in a cluster beside the services of its environments.',
    target: organizationTarget,
    action: 'organization.read',
    query: Type.Object({
      clusterMode: Type.Optional(schema.ClusterMode),
      cloudProvider: Type.Optional(schema.PlatformProvider),
    }),
    answer: { status: 200, body: schema.PlatformTemplateList },
    handler: () => wholeList([]),
  }),
  defineRoute({
    id: 'resolvePlatformTemplateComponentConfiguration',
    method: 'POST',
    path: `${TEMPLATES}/{templateKey}/{templateVersion}/component/{componentKey}/resolve`,
    tag,
    summary: 'Get what the configuration of a component of a template still needs: there is no template',
    description:
      'Every call is answered with 404: GET …/platformTemplate lists no template whose component this could be.',
    target: organizationTarget,
    action: 'organization.read',
    query: Type.Object({ clusterMode: schema.ClusterMode, cloudProvider: schema.PlatformProvider }),
    body: schema.ResolveRequest,
    answer: { status: 200, body: schema.TemplateComponentConfiguration },
    handler: noTemplate,
  }),
  defineRoute({
    id: 'getClusterPlatformBinding',
    method: 'GET',
    path: BINDING,
    tag,
    summary: 'Get the platform template of a cluster: it has none',
    description: 'Every call is answered with 404: no cluster can be bound to a template while there is none.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: schema.PlatformBinding },
    handler: noBinding,
  }),
  defineRoute({
    id: 'updateClusterPlatformBinding',
    method: 'PUT',
    path: BINDING,
    tag,
    summary: 'Bind a cluster to a platform template: refused, with the reason',
    description:
      'Every call is answered with 400 that names `templateKey`, and nothing is stored: there is no template.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: schema.PlatformBindingRequest,
    answer: { status: 200, body: schema.PlatformBinding },
    handler: ({ target }) => {
      throw invalidField(
        'templateKey',
        `must be the key of a platform template; GET /organization/${target.organizationId}/platformTemplate lists them, and this release has none`,
      );
    },
  }),
  defineRoute({
    id: 'resolvePlatformComponentConfiguration',
    method: 'POST',
    path: `${BINDING}/component/{componentKey}/resolve`,
    tag,
    summary: 'Get what the configuration of a component of a cluster still needs: the cluster has no template',
    description: 'Every call is answered with 404: the cluster is bound to no template.',
    target: clusterTarget,
    action: 'cluster.read',
    body: schema.ResolveRequest,
    answer: { status: 200, body: schema.ComponentConfiguration },
    handler: noBinding,
  }),
];
