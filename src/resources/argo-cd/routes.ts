import { defineRoute, type Route } from '#platform/http/route.ts';
import { clusterTarget } from '#resources/cluster/index.ts';
import { organizationTarget } from '#resources/organization/index.ts';
import { listInstances } from '#resources/argo-cd/instances.ts';
import type { ArgoCdNeeds } from '#resources/argo-cd/needs.ts';
import * as schema from '#resources/argo-cd/schema.ts';
import {
  checkArgoCd,
  deleteArgoCd,
  deleteMapping,
  getArgoCd,
  saveArgoCd,
  saveMapping,
} from '#resources/argo-cd/service.ts';

const tag = 'ArgoCD';
const CONFIGURATION = '/cluster/{clusterId}/argoCdConfig';
const MAPPING = '/organization/{organizationId}/argoCdDestinationClusterMapping';

/** Routes for the Argo CD of each cluster, and for the mapping of its destinations to clusters (docs/contributing/rules.md 39). */
export const argoCdRoutes = (needs: ArgoCdNeeds): Route[] => [
  defineRoute({
    id: 'getArgoCdCredentials',
    method: 'GET',
    path: CONFIGURATION,
    tag,
    summary: "Get how a cluster's Argo CD is reached",
    description: 'Answers address and state of the connection; the token is masked.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: schema.ArgoCd },
    handler: (call) => getArgoCd(call, call.target),
  }),
  defineRoute({
    id: 'saveArgoCdCredentials',
    method: 'POST',
    path: CONFIGURATION,
    tag,
    summary: "Set how a cluster's Argo CD is reached",
    description: 'It is asked at once; what came of that is answered with it and is no refusal.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: schema.ArgoCdRequest,
    refusesUnknownFields: true,
    answer: { status: 200, body: schema.ArgoCd },
    transaction: false,
    handler: (call) => saveArgoCd(call, call.target, call.body),
  }),
  defineRoute({
    id: 'deleteArgoCdCredentials',
    method: 'DELETE',
    path: CONFIGURATION,
    tag,
    summary: "Forget a cluster's Argo CD and the apps that were read from it",
    description: 'The apps disappear from this installation only: Argo CD keeps them.',
    target: clusterTarget,
    action: 'cluster.edit',
    answer: { status: 204, body: null },
    handler: (call) => deleteArgoCd(call, needs, call.target),
  }),
  defineRoute({
    id: 'checkArgoCdConnection',
    method: 'POST',
    path: `${CONFIGURATION}/check`,
    tag,
    summary: 'Ask an Argo CD whether it can be reached, knows the token and shows its apps',
    description: 'Nothing is stored. What came of the question is the answer, whether it is good or bad.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: schema.ArgoCdRequest,
    answer: { status: 200, body: schema.ArgoCdCheck },
    transaction: false,
    handler: (call) => checkArgoCd(call, call.target, call.body),
  }),
  defineRoute({
    id: 'listArgoCdDestinationClusterMappings',
    method: 'GET',
    path: MAPPING,
    tag,
    summary: 'List every Argo CD of an organization with the clusters that it deploys to',
    description: 'Answers the destinations of each Argo CD, and which cluster of the organization each of them is.',
    target: organizationTarget,
    action: 'cluster.read',
    filtersRows: true,
    answer: { status: 200, body: schema.ArgoCdInstanceList },
    handler: (call) => listInstances(call, call.principal, call.target),
  }),
  defineRoute({
    id: 'saveArgoCdDestinationClusterMapping',
    method: 'POST',
    path: MAPPING,
    tag,
    summary: 'Say which cluster a destination of an Argo CD is',
    description: 'Apps of the destination appear in the environment of that cluster whose namespace they have.',
    target: organizationTarget,
    action: 'cluster.edit',
    body: schema.ArgoCdMappingRequest,
    answer: { status: 200, body: schema.ArgoCdMapping },
    handler: (call) => saveMapping(call, call.target.organizationId, call.body),
  }),
  defineRoute({
    id: 'deleteArgoCdDestinationClusterMapping',
    method: 'DELETE',
    path: MAPPING,
    tag,
    summary: 'Forget which cluster a destination of an Argo CD is, and its apps',
    description: 'The apps disappear from this installation only: Argo CD keeps them.',
    target: organizationTarget,
    action: 'cluster.edit',
    query: schema.ArgoCdMappingQuery,
    answer: { status: 204, body: null },
    handler: (call) => deleteMapping(call, needs, call.target.organizationId, call.query),
  }),
];
