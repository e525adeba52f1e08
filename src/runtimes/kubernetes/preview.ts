import { isDeepStrictEqual } from 'node:util';
import type { ObjectChange, WorkloadSpec } from '#runtimes/runtime.ts';
import { apply, find, type Cluster, type Kind } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { ClusterObject } from './kinds.ts';
import { ANNOTATION, namespaceOf } from './labels.ts';
import { companionsOf, deploymentOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';

/** Fields that are told of an object, and characters of a value. */
const MOST_FIELDS = 100;
const MOST_CHARACTERS = 300;
/** Fields that deployments change each time, that the cluster writes, or that follow from variables and credentials. */
const LEFT_OUT = new RegExp(
  [
    String.raw`^metadata\.(?!labels|annotations)`,
    String.raw`^status\b`,
    String.raw`\["deployment\.kubernetes\.io/revision"\]$`,
    `\\["${ANNOTATION.asked.replaceAll('.', '\\.')}"\\]$`,
    String.raw`\.containers\[app\]\.env\b`,
    String.raw`\.imagePullSecrets\b`,
  ].join('|'),
);

/** Returns what a release would change, by an apply that the server does not carry out (`Runtime.preview`). */
export async function previewRelease(
  cluster: Cluster,
  spec: WorkloadSpec,
  signal: AbortSignal,
): Promise<ObjectChange[]> {
  // What stands in Secrets is told by its names elsewhere.
  const objects = [environmentPolicy(spec.identity), ...companionsOf(spec), deploymentOf(spec)].filter(
    ({ kind }) => kind !== 'Secret',
  );
  const kinds: Kind[] = [
    ...(spec.ports.length === 0 ? ['Service'] : []),
    ...(spec.routes.length === 0 ? ['Ingress', 'NetworkPolicy'] : []),
  ];
  const changes = await Promise.all([
    ...objects.map((object) => changeOf(cluster, object, signal)),
    ...kinds.map((kind) => removalOf(cluster, kind, spec, signal)),
  ]);
  return changes.filter((change) => change !== null);
}

async function changeOf(cluster: Cluster, wanted: ClusterObject, signal: AbortSignal): Promise<ObjectChange | null> {
  const { kind, metadata } = wanted;
  const object = `${kind} ${metadata.name}`;
  const present = await find(cluster, kind, metadata.namespace, metadata.name, signal);
  if (!present) return { object, change: 'CREATED', fields: [] };
  try {
    const fields: ObjectChange['fields'] = [];
    collectChanges(present, await apply(cluster, wanted, { isDryRun: true, signal }), '', fields);
    return fields.length === 0 ? null : { object, change: 'CHANGED', fields };
  } catch (error) {
    // Such as a field that cannot be changed, or a rule of the cluster.
    if (!(error instanceof ApiError) || ![400, 403, 409, 422].includes(error.status)) throw error;
    return { object, change: 'REFUSED', message: error.message, fields: [] };
  }
}

async function removalOf(
  cluster: Cluster,
  kind: Kind,
  { identity, hostname }: WorkloadSpec,
  signal: AbortSignal,
): Promise<ObjectChange | null> {
  const present = await find(cluster, kind, namespaceOf(identity), hostname, signal);
  return present && { object: `${kind} ${hostname}`, change: 'REMOVED', fields: [] };
}

/** Collects the fields in which two objects differ. */
function collectChanges(from: unknown, to: unknown, path: string, fields: ObjectChange['fields']): void {
  if (LEFT_OUT.test(path) || isDeepStrictEqual(from, to) || fields.length >= MOST_FIELDS) return;
  const [before, after] = [partsOf(from), partsOf(to)];
  if (!before || !after) {
    fields.push({ path, ...told('from', from), ...told('to', to) });
    return;
  }
  for (const name of new Set([...before.keys(), ...after.keys()]))
    collectChanges(before.get(name), after.get(name), `${path}${name}`.replace(/^\./, ''), fields);
}

/** Returns the parts of an object or of a list by their names; null for a value without parts. */
function partsOf(value: unknown): Map<string, unknown> | null {
  if (typeof value !== 'object' || value === null) return null;
  if (!Array.isArray(value))
    return new Map(
      Object.entries(value).map(([name, part]) => [/^[a-zA-Z0-9]+$/.test(name) ? `.${name}` : `["${name}"]`, part]),
    );
  return new Map(value.map((item: unknown, n) => [`[${nameOf(item) ?? n}]`, item]));
}

function nameOf(item: unknown): string | undefined {
  const { mountPath, name, containerPort, port, host } = (item ?? {}) as Record<string, unknown>;
  const known = mountPath ?? name ?? containerPort ?? host ?? port;
  return known === undefined ? undefined : String(known);
}

function told(name: 'from' | 'to', value: unknown) {
  const isSmall = value !== undefined && JSON.stringify(value).length <= MOST_CHARACTERS;
  return isSmall ? { [name]: value } : {};
}
