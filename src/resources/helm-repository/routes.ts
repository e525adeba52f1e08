import { fetchPage, slicePage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { PageQuery } from '#platform/http/schema.ts';
import { listServicesUsing, organizationTarget, toServiceUseView } from '#resources/organization/index.ts';
import { listCharts } from '#resources/helm-repository/charts.ts';
import { listHelmRepositories } from '#resources/helm-repository/queries.ts';
import * as schema from '#resources/helm-repository/schema.ts';
import {
  availableHelmRepositories,
  createHelmRepository,
  deleteHelmRepository,
  editHelmRepository,
  toHelmRepositoryView,
} from '#resources/helm-repository/service.ts';
import { helmRepositoryTarget } from '#resources/helm-repository/target.ts';

const tag = 'Helm Repositories';

/**
 * Routes of the container registries (`registry/routes.ts`) are alike line by line. One declaration of both would take each of their ids, paths,
 * texts, schemas, actions, functions and targets as parameters, and lose the types that tie a handler to its body.
 */

export const helmRepositoryRoutes: Route[] = [
  defineRoute({
    id: 'listAvailableHelmRepository',
    method: 'GET',
    path: '/availableHelmRepository',
    tag,
    summary: 'List the kinds of Helm repositories, each with the configuration that it takes',
    description: 'Answers the values of `kind`, and which fields of `config` each takes.',
    action: 'authenticated',
    query: PageQuery,
    answer: { status: 200, body: schema.AvailableHelmRepositoryList },
    readsOnlyTarget: true,
    handler: ({ query }) => slicePage(availableHelmRepositories(), query),
  }),
  defineRoute({
    id: 'listHelmRepository',
    method: 'GET',
    path: '/organization/{organizationId}/helmRepository',
    tag,
    summary: 'List the Helm repositories of an organization',
    description: 'Answers each repository with its kind and address, without its secrets.',
    target: organizationTarget,
    action: 'helmRepository.read',
    query: PageQuery,
    answer: { status: 200, body: schema.HelmRepositoryList },
    handler: ({ db, target, query }) => fetchPage(db, listHelmRepositories(db, target), query, toHelmRepositoryView),
  }),
  defineRoute({
    id: 'createHelmRepository',
    method: 'POST',
    path: '/organization/{organizationId}/helmRepository',
    tag,
    summary: 'Create a Helm repository',
    description: 'Stores where charts are read from. Secrets of `config` are encrypted and never answered.',
    target: organizationTarget,
    action: 'helmRepository.edit',
    body: schema.HelmRepositoryRequest,
    refusesUnknownFields: true,
    answer: { status: 201, body: schema.HelmRepository },
    handler: (call) => createHelmRepository(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'getHelmRepository',
    method: 'GET',
    path: '/organization/{organizationId}/helmRepository/{helmRepositoryId}',
    tag,
    summary: 'Get a Helm repository',
    description: 'Answers kind, address and the part of the configuration that is not secret.',
    target: helmRepositoryTarget,
    action: 'helmRepository.read',
    answer: { status: 200, body: schema.HelmRepository },
    readsOnlyTarget: true,
    handler: ({ target }) => toHelmRepositoryView(target),
  }),
  defineRoute({
    id: 'editHelmRepository',
    method: 'PUT',
    path: '/organization/{organizationId}/helmRepository/{helmRepositoryId}',
    tag,
    summary: 'Edit a Helm repository',
    description: 'Changes the repository for every service that reads charts from it; secrets that are left out stay.',
    target: helmRepositoryTarget,
    action: 'helmRepository.edit',
    body: schema.HelmRepositoryRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.HelmRepository },
    handler: (call) => editHelmRepository(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteHelmRepository',
    method: 'DELETE',
    path: '/organization/{organizationId}/helmRepository/{helmRepositoryId}',
    tag,
    summary: 'Delete a Helm repository that no service uses',
    description: 'Removes the repository and its secrets. 409 while services use it; associatedServices lists them.',
    target: helmRepositoryTarget,
    action: 'helmRepository.edit',
    answer: { status: 204, body: null },
    errors: [409],
    handler: (call) => deleteHelmRepository(call, call.target),
  }),
  defineRoute({
    id: 'getHelmCharts',
    method: 'GET',
    path: '/organization/{organizationId}/helmRepository/{helmRepositoryId}/charts',
    tag,
    summary: 'List charts of a Helm repository with their versions, the newest first',
    description: 'Asks the repository. A registry that shows no catalog is asked for one chart by chartName.',
    target: helmRepositoryTarget,
    action: 'helmRepository.read',
    query: schema.ChartsQuery,
    answer: { status: 200, body: schema.HelmChartList },
    errors: [502],
    transaction: false,
    handler: async (call) => slicePage(await listCharts(call, call.target, call.query.chartName), call.query),
  }),
  defineRoute({
    id: 'getHelmRepositoryAssociatedServices',
    method: 'GET',
    path: '/organization/{organizationId}/helmRepository/{helmRepositoryId}/associatedServices',
    tag: 'Organization Main Calls',
    summary: 'List the services that use a Helm repository',
    description: 'Answers every service whose chart comes from this repository, with its environment and project.',
    target: helmRepositoryTarget,
    action: 'helmRepository.read',
    filtersRows: true,
    query: PageQuery,
    answer: { status: 200, body: schema.HelmRepositoryAssociatedServiceList },
    handler: ({ db, principal, target, query }) =>
      fetchPage(
        db,
        listServicesUsing(db, principal, target.organizationId, { helmRepositoryId: target.id }),
        query,
        toServiceUseView,
      ),
  }),
];
