import { expect, test } from 'vitest';
import { checked, type ServiceRecord } from './record.ts';

const record = (change: object): ServiceRecord =>
  ({ generation: 1, hostname: 'app-z1', serving: null, candidate: null, isStopped: false, ...change }) as ServiceRecord;

test('a record that was changed leads to nothing outside of its namespace', () => {
  const deployment = { kind: 'ClusterRole', metadata: { name: 'other', namespace: 'kube-system' } };
  const changed = checked(record({ serving: { generation: 1, deployment } }), 'qd-own');
  expect(changed?.serving?.deployment).toEqual({
    kind: 'Deployment',
    metadata: { name: 'app-z1', namespace: 'qd-own' },
  });
  const autoscaler = {
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: '../../../other/x', namespace: 'kube-system' },
  };
  const scaled = checked(record({ serving: { generation: 1, deployment, autoscaler } }), 'qd-own');
  expect(scaled?.serving?.autoscaler?.metadata).toEqual({ name: 'app-z1', namespace: 'qd-own' });
  const hooks = [
    { collection: '/apis/batch/v1/namespaces/qd-own/jobs', name: 'hook' },
    { collection: '/apis/batch/v1/namespaces/kube-system/jobs', name: 'hook' },
    { collection: '/api/v1/namespaces/kube-system/secrets/namespaces/qd-own/a', name: 'hook' },
    { collection: '/api/v1/namespaces', name: 'kube-system' },
    { collection: '/api/v1/namespaces/qd-own/secrets', name: '../../kube-system/secrets/a' },
  ];
  const stopped = [
    { kind: 'Deployment', name: 'web', replicas: 1 },
    { kind: 'Namespace', name: 'qd-own', replicas: 1 },
    { kind: 'Deployment', name: '../web', replicas: 1 },
  ];
  expect(checked(record({ chart: { hooks, stopped } }), 'qd-own')?.chart).toEqual({
    hooks: [hooks[0]],
    stopped: [stopped[0]],
  });
  expect(() => checked(record({ hostname: '--kubeconfig=/etc/a' }), 'qd-own')).toThrow('was changed');
});
