import { expect, test } from 'vitest';
import { escalationIn } from '#kernel/parsing/chart-rights.ts';

const group = '/apis/rbac.authorization.k8s.io/v1';
const role = (rule: object) => escalationIn({ group, resource: 'roles' }, { rules: [rule] }, 'qd-own');
const binding = (object: Record<string, unknown>) => escalationIn({ group, resource: 'rolebindings' }, object, 'qd-own'); // prettier-ignore
const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'web' };

test.each([
  { apiGroups: [''], resources: ['pods', 'configmaps'], verbs: ['*'] },
  { apiGroups: ['*'], resources: ['secrets', 'pods/log'], verbs: ['get', 'list', 'patch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['get', 'create'] },
])('a Role of its own namespace is allowed: %j', (rule) => {
  expect(role(rule)).toBeNull();
});

test.each([
  { apiGroups: ['*'], resources: ['*'], verbs: ['get'] },
  { apiGroups: [''], resources: ['*/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods', 'namespaces'], verbs: ['get', 'patch'] },
  { apiGroups: [''], resources: ['namespaces/finalize'], verbs: ['update'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['*'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['escalate'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'], verbs: ['*'] },
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
])('a Role by which a pod could change its namespace or its rights is refused: %j', (rule) => {
  expect(role(rule)).toContain('allow_cluster_wide_resources');
});

test('a RoleBinding gives rights of a Role to accounts of its environment', () => {
  const subjects = [
    { kind: 'ServiceAccount', name: 'web', namespace: 'qd-own' },
    { kind: 'Group', name: 'system:serviceaccounts:qd-own' },
    { kind: 'User', name: 'system:serviceaccount:qd-own:web' },
  ];
  expect(binding({ roleRef, subjects })).toBeNull();
  // A change of a part.
  expect(binding({ metadata: { labels: {} } })).toBeNull();
});

test.each([
  { roleRef: { ...roleRef, kind: 'ClusterRole', name: 'cluster-admin' } },
  { roleRef: null },
  { roleRef, subjects: [{ kind: 'ServiceAccount', name: 'web', namespace: 'qd-other' }] },
  { roleRef, subjects: [{ kind: 'ServiceAccount', name: 'web' }] },
  { roleRef, subjects: [{ kind: 'Group', name: 'system:authenticated' }] },
  { roleRef, subjects: [{ kind: 'User', name: 'system:anonymous' }] },
  { subjects: [null] },
])('a RoleBinding that leads out of its environment is refused: %j', (object) => {
  expect(binding(object)).toContain('allow_cluster_wide_resources');
});

test('a Service that would take addresses of the network is refused', () => {
  const target = { group: '/api/v1', resource: 'services' };
  expect(escalationIn(target, { spec: { externalIPs: ['10.0.0.1'] } }, 'qd-own')).toContain('externalIPs');
  expect(escalationIn(target, { spec: { externalIPs: [], type: 'LoadBalancer' } }, 'qd-own')).toBeNull();
});
