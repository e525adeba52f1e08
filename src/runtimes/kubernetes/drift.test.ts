import { expect, test } from 'vitest';
import { newIdentity, newSpec } from '#runtimes/contract/fixture.ts';
import { driftOf } from './drift.ts';
import type { FieldTree, FoundDeployment } from './kinds.ts';
import { deploymentOf } from './objects.ts';

const release = deploymentOf(newSpec(newIdentity('test'), 'image:1', { storage: [], entrypoint: ['run'] }));

/** Returns the tree of fields of a value as the API server writes it after an apply. */
function treeOf(value: unknown): FieldTree {
  if (typeof value !== 'object' || value === null) return {};
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [`f:${name}`, treeOf(part)]));
  const items = (value as Record<string, unknown>[]).filter((item) => typeof item === 'object');
  return Object.fromEntries(items.map((item) => [keyOf(item), { '.': {}, ...treeOf(item) }]));
}

function keyOf({ name, containerPort, protocol, mountPath }: Record<string, unknown>): string {
  const keys = mountPath ? { mountPath } : containerPort ? { containerPort, protocol } : { name };
  return `k:${JSON.stringify(keys)}`;
}

/** Returns the Deployment after others have changed it; `change` gets its values and the fields that are ours. */
function changed(change: (spec: any, ours: any) => FieldTree): FoundDeployment {
  const { metadata, spec } = structuredClone(release);
  const { labels, annotations } = metadata;
  const ours = treeOf({ metadata: { labels, annotations }, spec });
  const theirs = change(spec, ours);
  const managedFields = [
    { manager: 'quarterdeck', operation: 'Apply' as const, fieldsV1: ours },
    { manager: 'kube-controller-manager', operation: 'Update' as const, subresource: 'status', fieldsV1: {} },
    { manager: 'kubectl-edit', operation: 'Update' as const, fieldsV1: theirs },
  ];
  return { ...release, metadata: { ...metadata, managedFields }, spec };
}

const object = `Deployment ${release.metadata.name}`;

test('a Deployment that only the cluster and others with fields of their own have changed has no drift', () => {
  const present = changed((spec) => {
    spec.template.metadata.annotations.team = 'a';
    return { 'f:spec': { 'f:template': { 'f:metadata': { 'f:annotations': { 'f:team': {} } } } } };
  });
  expect(driftOf(release, present)).toEqual([]);
});

test('a field that somebody else wrote is told with its manager', () => {
  const present = changed((spec, ours) => {
    spec.replicas = 0;
    spec.template.spec.containers[0].image = 'other:1';
    delete ours['f:spec']['f:replicas'];
    delete ours['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"app"}']['f:image'];
    const image = { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"app"}': { 'f:image': {} } } } } };
    return { 'f:spec': { 'f:replicas': {}, ...image } };
  });
  expect(driftOf(release, present)).toEqual([
    { object, field: 'spec.replicas', manager: 'kubectl-edit' },
    { object, field: 'spec.template.spec.containers[app].image', manager: 'kubectl-edit' },
  ]);
});

test('a field that somebody else took away is told without a manager', () => {
  const present = changed((spec, ours) => {
    delete spec.template.spec.containers[0].resources.limits.memory;
    delete ours['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"app"}']['f:resources']['f:limits'][
      'f:memory'
    ];
    return {};
  });
  const field = 'spec.template.spec.containers[app].resources.limits.memory';
  expect(driftOf(release, present)).toEqual([{ object, field, manager: null }]);
});

test('a field that somebody else wrote back as it was has no drift', () => {
  const present = changed((_spec, ours) => {
    delete ours['f:spec']['f:replicas'];
    return { 'f:spec': { 'f:replicas': {} } };
  });
  expect(driftOf(release, present)).toEqual([]);
});

test('replicas that the autoscaler of the cluster sets are no drift', () => {
  const present = changed((spec, ours) => {
    spec.replicas = 7;
    delete ours['f:spec']['f:replicas'];
    return {};
  });
  const scaler = { manager: 'kube-controller-manager', operation: 'Update' as const, subresource: 'scale', fieldsV1: { 'f:spec': { 'f:replicas': {} } } }; // prettier-ignore
  present.metadata.managedFields!.push(scaler);
  expect(driftOf(release, present)).toEqual([]);
});
