import { isDeepStrictEqual } from 'node:util';
import type { ObjectChange, WorkloadSpec } from '#runtimes/runtime.ts';
import { AUTOSCALERS, apply, find, type Cluster } from './cluster.ts';
import { ApiError } from './errors.ts';
import { extensionsOf, isThere } from './extensions.ts';
import type { ClusterObject } from './kinds.ts';
import { eventScalerOf } from './keda.ts';
import { ANNOTATION, namespaceOf } from './labels.ts';
import { findMade } from './made.ts';
import { nameOf } from './metadata.ts';
import { companionsOf, releaseOf } from './objects.ts';
import { environmentPolicy } from './policies.ts';
import { readRecord } from './record/index.ts';
import { AlteredRecord } from './record/seal.ts';

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
  const extensions = await extensionsOf(cluster);
  const events = await eventScalerOf(spec, extensions);
  const companions = companionsOf(spec, extensions);
  const { objects = [], deployment, autoscaler } = releaseOf(spec, companions, events?.scaler);
  // What stands in Secrets is told by its names elsewhere.
  const wanted = [
    environmentPolicy(spec.identity),
    ...companions,
    deployment,
    ...(autoscaler ? [autoscaler] : []),
  ].filter(({ kind }) => kind !== 'Secret');
  const made = await readMade(cluster, spec);
  const autoscalers = AUTOSCALERS.filter((kind) => kind !== autoscaler?.kind && isThere(kind, extensions));
  const left = await Promise.all(
    autoscalers.map(async (kind) => {
      const present = await find(cluster, kind, namespaceOf(spec.identity), spec.hostname, signal);
      return present ? [nameOf(present)] : [];
    }),
  );
  const removed = [...made, ...left.flat()].filter(
    (name) => !objects.includes(name) && !/^(Secret|TriggerAuthentication)\//.test(name),
  );
  const changes = [
    ...(await Promise.all(wanted.map((object) => changeOf(cluster, object, signal, autoscaler !== undefined)))),
    ...removed.map((name): ObjectChange => ({ object: name.replace('/', ' '), change: 'REMOVED', fields: [] })),
  ];
  return changes.filter((change) => change !== null);
}

/** Returns the names of the objects that releases made; by their labels where the record was altered. */
async function readMade(cluster: Cluster, { identity }: WorkloadSpec): Promise<string[]> {
  try {
    return (await readRecord(cluster, identity))?.made ?? [];
  } catch (error) {
    if (error instanceof AlteredRecord) return findMade(cluster, identity);
    throw error;
  }
}

async function changeOf(
  cluster: Cluster,
  wanted: ClusterObject,
  signal: AbortSignal,
  isScaled: boolean,
): Promise<ObjectChange | null> {
  const { kind, metadata } = wanted;
  const object = `${kind} ${metadata.name}`;
  const present = await find(cluster, kind, metadata.namespace, metadata.name, signal);
  if (!present) return { object, change: 'CREATED', fields: [] };
  try {
    const fields: ObjectChange['fields'] = [];
    collectChanges(present, await apply(cluster, wanted, { isDryRun: true, signal }), '', fields);
    // The number of pods is handed over to the autoscaler as it is; an apply alone would bring it back to 1.
    const told = kind === 'Deployment' && isScaled ? fields.filter(({ path }) => path !== 'spec.replicas') : fields;
    return told.length === 0 ? null : { object, change: 'CHANGED', fields: told };
  } catch (error) {
    // Such as a field that cannot be changed, or a rule of the cluster.
    if (!(error instanceof ApiError) || ![400, 403, 409, 422].includes(error.status)) throw error;
    return { object, change: 'REFUSED', message: error.message, fields: [] };
  }
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
  return new Map(value.map((item: unknown, n) => [`[${itemName(item) ?? n}]`, item]));
}

function itemName(item: unknown): string | undefined {
  const { mountPath, name, containerPort, port, host } = (item ?? {}) as Record<string, unknown>;
  const known = mountPath ?? name ?? containerPort ?? host ?? port;
  return known === undefined ? undefined : String(known);
}

function told(name: 'from' | 'to', value: unknown) {
  const isSmall = value !== undefined && JSON.stringify(value).length <= MOST_CHARACTERS;
  return isSmall ? { [name]: value } : {};
}
