import type { RuntimeFeature } from '#runtimes/runtime.ts';
import { API } from './extensions.ts';

/** Rights that the control plane needs in a cluster. The check at connection asks for each; `quarterdeck cluster rbac` prints them. */
export interface Right {
  group: string;
  resource: string;
  verbs: string[];
  /** Use of the right, for people. */
  reason: string;
  /** Feature that alone needs the right: without it the cluster lacks the feature and is used all the same. */
  feature?: RuntimeFeature;
  /** Sentence about the loss without the right; the cluster is used all the same. */
  limit?: string;
  /** API without which the right is not needed. */
  api?: string;
}

const CHANGE = ['get', 'list', 'create', 'update', 'patch', 'delete'];
const FOLLOW = [...CHANGE, 'watch'];

const UNCOUNTED = 'Requests are not counted where Traefik is the gateway.';

export const RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'namespaces',
    verbs: ['get', 'list', 'create', 'patch', 'delete'],
    reason: 'each environment has one',
  },
  { group: 'apps', resource: 'deployments', verbs: FOLLOW, reason: 'each service has one' },
  { group: 'batch', resource: 'jobs', verbs: CHANGE, reason: 'each run of a job is one', feature: 'tasks' },
  { group: '', resource: 'services', verbs: FOLLOW, reason: 'names of services within an environment' },
  { group: '', resource: 'secrets', verbs: CHANGE, reason: 'variables and files of a release' },
  { group: '', resource: 'configmaps', verbs: FOLLOW, reason: 'the record of a service' },
  { group: '', resource: 'persistentvolumeclaims', verbs: CHANGE, reason: 'volumes' },
  { group: 'networking.k8s.io', resource: 'ingresses', verbs: CHANGE, reason: 'HTTP from outside' },
  { group: 'networking.k8s.io', resource: 'networkpolicies', verbs: CHANGE, reason: 'environments are kept apart' },
  { group: '', resource: 'pods', verbs: ['get', 'list', 'watch'], reason: 'states of instances' },
  { group: '', resource: 'pods', verbs: ['patch'], reason: 'runs of jobs are ended', feature: 'tasks' },
  { group: '', resource: 'events', verbs: ['list'], reason: 'why a run of a job gets no pod', feature: 'tasks' },
  { group: 'discovery.k8s.io', resource: 'endpointslices', verbs: ['list'], reason: 'whether a service is reached' },
  { group: '', resource: 'pods/log', verbs: ['get'], reason: 'logs' },
  {
    group: '',
    resource: 'pods/exec',
    verbs: ['get', 'create'],
    reason: 'programs beside a service, and what Terraform answers',
  },
  {
    group: '',
    resource: 'pods/portforward',
    verbs: ['get', 'create'],
    reason: 'connections to ports of instances',
    limit: 'Ports of services cannot be forwarded.',
  },
  {
    group: '',
    resource: 'pods/proxy',
    verbs: ['get'],
    reason: 'the metrics of Traefik, which count requests',
    limit: UNCOUNTED,
  },
  { group: '', resource: 'nodes', verbs: ['list'], reason: 'the size of the cluster' },
  { group: 'storage.k8s.io', resource: 'storageclasses', verbs: ['list'], reason: 'whether there are volumes' },
  { group: 'networking.k8s.io', resource: 'ingressclasses', verbs: ['list'], reason: 'whether HTTP comes in' },
  { group: 'autoscaling', resource: 'horizontalpodautoscalers', verbs: CHANGE, reason: 'scaling by load' },
  {
    group: 'policy',
    resource: 'poddisruptionbudgets',
    verbs: CHANGE,
    reason: 'a drained node ends one instance of a service at a time',
  },
  optional(API.metrics, 'pods', ['get', 'list'], 'CPU and memory of instances'),
  {
    api: API.metrics,
    group: 'metrics.k8s.io',
    resource: 'nodes',
    verbs: ['list'],
    reason: 'CPU and memory of nodes',
    limit: 'Nodes are not measured.',
  },
  optional(API.keda, 'scaledobjects', CHANGE, 'scaling by events'),
  optional(API.keda, 'triggerauthentications', CHANGE, 'credentials for the sources of events'),
  optional(API.gateways, 'gateways', ['get', 'list'], 'the Gateway that routes are attached to'),
  {
    ...optional(API.gateways, 'gatewayclasses', ['list'], 'whether Traefik is the gateway, whose requests are counted'),
    limit: UNCOUNTED,
  },
  optional(API.gateways, 'httproutes', CHANGE, 'HTTP from outside through a Gateway'),
  optional(API.gateways, 'grpcroutes', CHANGE, 'gRPC from outside through a Gateway'),
  optional(API.gateways, 'listenersets', CHANGE, 'HTTPS of custom domains at a Gateway'),
  optional(API.certificates, 'clusterissuers', ['get', 'list'], 'the issuer of certificates'),
  optional(API.certificates, 'certificates', CHANGE, 'HTTPS of custom domains'),
  ...chartRights('apps', ['statefulsets', 'daemonsets'], 'workloads of Helm charts'),
  ...chartRights('batch', ['jobs', 'cronjobs'], 'jobs and hooks of Helm charts'),
  ...chartRights('', ['serviceaccounts'], 'accounts of the pods of Helm charts'),
  ...chartRights(
    'rbac.authorization.k8s.io',
    ['roles', 'rolebindings'],
    'rights of the pods of Helm charts, never more than these',
  ),
  {
    group: '',
    resource: 'pods',
    verbs: ['create', 'delete', 'watch'],
    reason: 'pods that are hooks of Helm charts',
    feature: 'helm',
  },
  {
    group: 'apps',
    resource: 'replicasets',
    verbs: ['get', 'list'],
    reason: 'helm waits for the pods of a Deployment',
    feature: 'helm',
  },
];

function chartRights(group: string, resources: string[], reason: string): Right[] {
  return resources.map((resource) => ({ group, resource, verbs: [...CHANGE, 'watch'], reason, feature: 'helm' }));
}

/** Makes a right to an API that a cluster may lack. */
function optional(api: string, resource: string, verbs: string[], reason: string): Right {
  return { api, group: api.split('/')[0]!, resource, verbs, reason };
}

/** Name of the role, its binding and the account in the printed manifest. */
const NAME = 'quarterdeck';

/** Returns the objects that give an account in the cluster all rights, for `kubectl apply`. */
export function rbacManifest(namespace: string): object[] {
  const rules = RIGHTS.map(({ group, resource, verbs }) => ({ apiGroups: [group], resources: [resource], verbs }));
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME };
  return [
    // Charts that may have objects of the whole cluster leave a namespace with this label alone.
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'app.kubernetes.io/managed-by': 'quarterdeck' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: NAME }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: NAME },
      roleRef,
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace }],
    },
    // A token that lasts: those of `kubectl create token` end after hours.
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: { name: `${NAME}-token`, namespace, annotations: { 'kubernetes.io/service-account.name': NAME } },
    },
  ];
}
