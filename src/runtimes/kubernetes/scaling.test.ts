import { describe, expect, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import type { WorkloadSpec } from '#runtimes/runtime.ts';
import { quantityOf } from './metrics.ts';
import { companionsOf, deploymentOf, releaseOf } from './objects.ts';
import { leastOf, whyNotScaled } from './scaling.ts';

const scaling = { cpuPercent: 60, memoryPercent: null };
const spec = (changes: Partial<WorkloadSpec> = {}): WorkloadSpec =>
  newSpec(newIdentity('test'), 'shop:1', { instances: { min: 2, max: 5 }, scaling, ...changes });
const releaseFrom = (made: WorkloadSpec) => releaseOf(made, companionsOf(made));
const storage = [{ id: 'a', mountPath: '/a', sizeGib: 1 }];

describe('a release whose instances may be more than their minimum', () => {
  test('has an autoscaler by CPU, by memory as well where the service says so, and no number of its own', () => {
    const { autoscaler, deployment } = releaseFrom(spec());
    expect(deployment.spec).not.toHaveProperty('replicas');
    const cpu = {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } },
    };
    expect(autoscaler!['spec']).toMatchObject({ minReplicas: 2, maxReplicas: 5, metrics: [cpu] });
    const both = releaseFrom(spec({ scaling: { cpuPercent: 60, memoryPercent: 80 } })).autoscaler!['spec'];
    const target = { type: 'Utilization', averageUtilization: 80 };
    expect(both).toMatchObject({ metrics: [cpu, { type: 'Resource', resource: { name: 'memory', target } }] });
    expect(leastOf(releaseFrom(spec()))).toBe(2);
  });

  test.each([
    ['a fixed number', { instances: { min: 2, max: 2 } }, 2, null],
    ['volumes', { storage }, 2, /2 instances run.*volumes/],
    ['a minimum of 0', { instances: { min: 0, max: 3 } }, 0, /No instance runs/],
  ] as const)('has a number of its own with %s', (_what, changes, replicas, hint) => {
    const made = spec(changes as Partial<WorkloadSpec>);
    const { autoscaler, deployment } = releaseFrom(made);
    expect([autoscaler, deployment.spec.replicas]).toEqual([undefined, replicas]);
    if (hint) expect(whyNotScaled(made, true)).toMatch(hint);
    else expect(whyNotScaled(made, true)).toBeNull();
  });

  test('tells that the cluster measures nothing', () => {
    expect(whyNotScaled(spec(), true)).toBeNull();
    expect(whyNotScaled(spec(), false)).toContain('install metrics-server');
  });
});

test('instances are spread over nodes and zones as the service says, and a drained node ends one at a time', () => {
  const kindsOf = (made: WorkloadSpec) => companionsOf(made).map(({ kind }) => kind);
  expect(kindsOf(spec())).toContain('PodDisruptionBudget');
  const single = spec({ instances: { min: 1, max: 1 } });
  expect(kindsOf(single)).not.toContain('PodDisruptionBudget');
  expect(deploymentOf(single).spec.template.spec).not.toHaveProperty('topologySpreadConstraints');
  const podOf = (made: WorkloadSpec) => deploymentOf(made).spec.template.spec;
  expect(podOf(spec())['topologySpreadConstraints']).toMatchObject([
    {
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      matchLabelKeys: ['pod-template-hash'],
    },
  ]);
  const placement = { nodeLabels: { disk: 'fast' }, isApart: true, zones: 'DoNotSchedule' } as const;
  expect(podOf(spec({ placement }))).toMatchObject({
    nodeSelector: { disk: 'fast' },
    affinity: {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }] },
    },
    topologySpreadConstraints: [{ topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' }],
  });
});

test('quantities of Kubernetes are numbers, and anything else is refused', () => {
  expect(['0', '250m', '12345678n', '1.5', '2Ki', '3Gi', '1e3', '5M'].map(quantityOf)).toEqual([
    0,
    0.25,
    0.012345678,
    1.5,
    2048,
    3 * 2 ** 30,
    1000,
    5e6,
  ]);
  for (const text of ['', 'm', '1x', '1 Ki', '--1', '1..2', '1e', '9'.repeat(100)])
    expect(() => quantityOf(text)).toThrow('no quantity');
});
