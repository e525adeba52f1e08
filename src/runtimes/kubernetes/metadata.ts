import type { Annotations, ProgramSpec } from '#runtimes/runtime.ts';
import type { ClusterObject } from './kinds.ts';
import { identityLabels, namespaceOf } from './labels.ts';

/** Returns the metadata of an object of a service; `scope` names the kinds of objects that annotations are for. */
export const metadataOf = (
  spec: Pick<ProgramSpec, 'identity'> & Partial<Pick<ProgramSpec, 'labels' | 'annotations'>>,
  name: string,
  scope: string,
) => ({
  name,
  namespace: namespaceOf(spec.identity),
  labels: { ...spec.labels, ...identityLabels(spec.identity) },
  annotations: annotationsFor(spec.annotations, scope),
});

export const annotationsFor = (annotations: Annotations[] = [], scope: string): Record<string, string> =>
  Object.assign({}, ...annotations.filter(({ scopes }) => scopes.includes(scope)).map(({ values }) => values));

/** Returns the name by which a record keeps an object. */
export const nameOf = ({ kind, metadata }: ClusterObject): string => `${kind}/${metadata.name}`;
