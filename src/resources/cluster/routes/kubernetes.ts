import { AppError, badRequest, notFound } from '#kernel/errors.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { Type } from '#platform/http/schema.ts';
import {
  editEksAnywhereCommit,
  editKarpenterSubnets,
  kubeconfigOf,
  requireKubernetes,
  refuseKubeconfig,
  saveKubeconfig,
} from '#resources/cluster/configuration.ts';
import type { ClusterRow } from '#resources/cluster/queries.ts';
import {
  Analysis,
  AnalysisList,
  AnalysisLogList,
  AnalysisRequest,
  ClusterToken,
  EksAnywhereCommit,
  EksAnywhereCommitList,
  EksAnywhereJwt,
  KarpenterSubnetsRequest,
  KubeconfigQuery,
  TokenQuery,
} from '#resources/cluster/schema/kubernetes.ts';
import { clusterOfAnyOrganization, clusterTarget } from '#resources/cluster/target.ts';

const PATH = '/organization/{organizationId}/cluster/{clusterId}';
const YAML = 'application/x-yaml';
const tag = 'Clusters';

/** Throws 400: EKS Anywhere clusters are only recorded. */
function refuseEksAnywhere(cluster: ClusterRow, what: string): never {
  requireKubernetes(cluster, what);
  throw badRequest(`${what}: EKS Anywhere clusters are not made from here, and their repository is not read.`);
}

/** Routes for features of Kubernetes clusters, some for EKS Anywhere only. Other clusters are refused with the reason. */
export const kubernetesRoutes: Route[] = [
  defineRoute({
    id: 'getClusterKubeconfig',
    method: 'GET',
    path: `${PATH}/kubeconfig`,
    tag,
    summary: 'Get where a Kubernetes cluster is, as a kubeconfig without credentials',
    description:
      'Credentials are written only: put your own into `users`. With or without `with_token_from_cli` and `read_only` the answer is the same.',
    target: clusterOfAnyOrganization,
    action: 'cluster.secrets',
    query: KubeconfigQuery,
    answer: { status: 200, body: Type.String(), contentType: YAML },
    // The file is read in a thread of its own, which may take seconds.
    transaction: false,
    handler: (call) => kubeconfigOf(call, call.target),
  }),
  defineRoute({
    id: 'editClusterKubeconfig',
    method: 'PUT',
    path: `${PATH}/kubeconfig`,
    tag,
    summary: 'Set the kubeconfig of a Kubernetes cluster',
    description: 'It is kept encrypted. One that runs programs or reads files of the control plane is refused.',
    target: clusterOfAnyOrganization,
    action: 'cluster.secrets',
    body: Type.String({ minLength: 1 }),
    bodyContentType: YAML,
    answer: { status: 204, body: null },
    // It is read by a thread of its own, which may take seconds: not while a row is locked.
    before: { run: (call) => refuseKubeconfig(call.target, call.body) },
    handler: (call) => saveKubeconfig(call, call.target, call.body),
  }),
  defineRoute({
    id: 'getClusterToken',
    method: 'GET',
    path: '/cluster/{clusterId}/token',
    tag,
    summary: 'Token for a Kubernetes cluster, as a program of a kubeconfig asks for it: refused, with the reason',
    description: 'Every call is answered with 400: credentials of a cluster are written only.',
    target: clusterTarget,
    action: 'cluster.secrets',
    query: TokenQuery,
    answer: { status: 200, body: ClusterToken },
    readsOnlyTarget: true,
    handler: ({ target }) => {
      requireKubernetes(target, 'There is no token');
      throw badRequest(
        `The credentials of cluster ${target.name} are written only: put your own into \`users\` of the kubeconfig that GET /organization/${target.organization_id}/cluster/${target.id}/kubeconfig answers.`,
      );
    },
  }),
  defineRoute({
    id: 'getInstallationHelmValues',
    method: 'GET',
    path: `${PATH}/installationHelmValues`,
    tag,
    summary: 'Values of the chart that is installed in a Kubernetes cluster: none is',
    description:
      'Every call is answered with 404, or 400 on a cluster that is no Kubernetes: nothing is installed by a chart.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: Type.String(), contentType: YAML },
    errors: [400],
    readsOnlyTarget: true,
    handler: ({ target }) => {
      requireKubernetes(target, 'There are no Helm values');
      throw new AppError(
        'not_found',
        'Nothing is installed in a cluster by a chart: it is reached through its API, with the kubeconfig that you give.',
      );
    },
  }),
  defineRoute({
    id: 'updateKarpenterPrivateFargateSubnetIds',
    method: 'PUT',
    path: `${PATH}/karpenterPrivateSubnetIds`,
    tag,
    summary: 'Change the subnets for Fargate of a cluster in a VPC of your own',
    description: 'Stores the subnets of the body with the cluster. 400 on a cluster that is no Kubernetes.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: KarpenterSubnetsRequest,
    answer: { status: 200, body: Type.Object({}) },
    handler: async (call) => {
      await editKarpenterSubnets(call, call.target, call.body);
      return {};
    },
  }),
  defineRoute({
    id: 'listEksAnywhereCommits',
    method: 'GET',
    path: `${PATH}/eks-anywhere/commits`,
    tag,
    summary: 'Commits of the repository of an EKS Anywhere cluster',
    description: 'Every call is answered with 400: the repository of an EKS Anywhere cluster is not read.',
    target: clusterTarget,
    action: 'cluster.read',
    answer: { status: 200, body: EksAnywhereCommitList },
    errors: [400],
    readsOnlyTarget: true,
    handler: ({ target }) => refuseEksAnywhere(target, 'There are no commits'),
  }),
  defineRoute({
    id: 'updateEksAnywhereCommit',
    method: 'PUT',
    path: `${PATH}/eks-anywhere/commit`,
    tag,
    summary: 'Record another commit of the repository of an EKS Anywhere cluster',
    description: 'Stores the commit with the cluster, and nothing more: EKS Anywhere clusters are only recorded here.',
    target: clusterTarget,
    action: 'cluster.edit',
    body: EksAnywhereCommit,
    answer: { status: 200, body: EksAnywhereCommit },
    handler: (call) => editEksAnywhereCommit(call, call.target, call.body.commit_id),
  }),
  defineRoute({
    id: 'getEksAnywhereClusterJwt',
    method: 'GET',
    path: `${PATH}/eks-anywhere/jwt`,
    tag,
    summary: 'Token for making an EKS Anywhere cluster',
    description: 'Every call is answered with 400: EKS Anywhere clusters are not made from here.',
    target: clusterTarget,
    action: 'cluster.secrets',
    answer: { status: 200, body: EksAnywhereJwt },
    errors: [400],
    readsOnlyTarget: true,
    handler: ({ target }) => refuseEksAnywhere(target, 'There is no token'),
  }),
  ...analysisRoutes(),
];

/** Analyses of what stands in a Kubernetes cluster. No tool for them is part of the program, so that none was ever made. */
function analysisRoutes(): Route[] {
  const path = '/clusters/{clusterId}/analysis';
  const notThere = () => {
    throw notFound('Analysis');
  };
  return [
    defineRoute({
      id: 'startClusterAnalysis',
      method: 'POST',
      path,
      tag,
      summary: 'Start an analysis of a Kubernetes cluster: refused, with the reason',
      description:
        'Every call is answered with 400, whose message names the programs to run against the cluster yourself.',
      target: clusterTarget,
      action: 'cluster.deploy',
      body: AnalysisRequest,
      answer: { status: 200, body: Analysis },
      handler: ({ target }) => {
        requireKubernetes(target, 'There is nothing to analyse');
        throw badRequest(
          'Analyses of cost and of outdated APIs are made by programs (krr, kubent) that are not part of this installation: run them against the cluster yourself.',
        );
      },
    }),
    defineRoute({
      id: 'listClusterAnalyses',
      method: 'GET',
      path,
      tag,
      summary: 'List the analyses of a cluster',
      description: 'The list is empty, because no analysis can be started.',
      target: clusterTarget,
      action: 'cluster.read',
      answer: { status: 200, body: AnalysisList },
      readsOnlyTarget: true,
      handler: () => ({ results: [] }),
    }),
    defineRoute({
      id: 'getClusterAnalysis',
      method: 'GET',
      path: `${path}/{analysisId}`,
      tag,
      summary: 'Get an analysis of a cluster',
      description: 'Every call is answered with 404, because no analysis can be started.',
      target: clusterTarget,
      action: 'cluster.read',
      answer: { status: 200, body: Analysis },
      readsOnlyTarget: true,
      handler: notThere,
    }),
    defineRoute({
      id: 'listClusterAnalysisLogs',
      method: 'GET',
      path: `${path}/{analysisId}/logs`,
      tag,
      summary: 'List what an analysis has told',
      description: 'Every call is answered with 404, because no analysis can be started.',
      target: clusterTarget,
      action: 'cluster.read',
      answer: { status: 200, body: AnalysisLogList },
      readsOnlyTarget: true,
      handler: notThere,
    }),
  ];
}
