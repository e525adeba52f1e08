import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listServicesUsing, organizationTarget, toServiceUseView } from '#resources/organization/index.ts';
import { listImages } from '#resources/registry/images.ts';
import { listRegistries } from '#resources/registry/queries.ts';
import * as schema from '#resources/registry/schema.ts';
import {
  availableRegistries,
  createRegistry,
  deleteRegistry,
  editRegistry,
  toRegistryView,
} from '#resources/registry/service.ts';
import { registryTarget } from '#resources/registry/target.ts';

const tag = 'Container Registries';

export const registryRoutes: Route[] = [
  defineRoute({
    id: 'listAvailableContainerRegistry',
    method: 'GET',
    path: '/availableContainerRegistry',
    tag,
    summary: 'List the kinds of container registries, each with the configuration that it takes',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.AvailableContainerRegistryList },
    handler: ({ query }) => slicePage(availableRegistries(), query),
  }),
  defineRoute({
    id: 'listContainerRegistry',
    method: 'GET',
    path: '/organization/{organizationId}/containerRegistry',
    tag,
    summary: 'List the container registries of an organization',
    target: organizationTarget,
    action: 'containerRegistry.read',
    query: PageQuery,
    answer: { status: 200, body: schema.ContainerRegistryList },
    handler: ({ db, target, query }) => fetchPage(db, listRegistries(db, target), query, toRegistryView),
  }),
  defineRoute({
    id: 'createContainerRegistry',
    method: 'POST',
    path: '/organization/{organizationId}/containerRegistry',
    tag,
    summary: 'Create a container registry',
    target: organizationTarget,
    action: 'containerRegistry.edit',
    body: schema.ContainerRegistryRequest,
    answer: { status: 201, body: schema.ContainerRegistry },
    handler: (call) => createRegistry(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getContainerRegistry',
    method: 'GET',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}',
    tag,
    summary: 'Get a container registry',
    target: registryTarget,
    action: 'containerRegistry.read',
    answer: { status: 200, body: schema.ContainerRegistry },
    handler: ({ target }) => toRegistryView(target),
  }),
  defineRoute({
    id: 'editContainerRegistry',
    method: 'PUT',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}',
    tag,
    summary: 'Edit a container registry',
    target: registryTarget,
    action: 'containerRegistry.edit',
    body: schema.ContainerRegistryRequest,
    answer: { status: 200, body: schema.ContainerRegistry },
    handler: (call) => editRegistry(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteContainerRegistry',
    method: 'DELETE',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}',
    tag,
    summary: 'Delete a container registry that no service uses',
    target: registryTarget,
    action: 'containerRegistry.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteRegistry(call, call.target),
  }),
  defineRoute({
    id: 'getContainerVersions',
    method: 'GET',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}/images',
    tag,
    summary: 'List images of a container registry with their versions',
    description: 'Asks the registry. One that shows no catalog of its images takes a search as the name of one.',
    target: registryTarget,
    action: 'containerRegistry.read',
    query: schema.ImagesQuery,
    answer: { status: 200, body: schema.ContainerImageList },
    errors: [502],
    handler: async (call) => slicePage(await listImages(call, call.target, call.query), call.query),
  }),
  defineRoute({
    id: 'getContainerRegistryAssociatedServices',
    method: 'GET',
    path: '/organization/{organizationId}/containerRegistry/{containerRegistryId}/associatedServices',
    tag: 'Organization Main Calls',
    summary: 'List the services that use a container registry',
    target: registryTarget,
    action: 'containerRegistry.read',
    query: PageQuery,
    answer: { status: 200, body: schema.ContainerRegistryAssociatedServiceList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(
        db,
        listServicesUsing(db, principal, target.organizationId, { containerRegistryId: target.id }),
        query,
        toServiceUseView,
      ),
  }),
];
