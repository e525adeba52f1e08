import { isDeepStrictEqual } from 'node:util';
import type { DriftedField } from '#runtimes/runtime.ts';
import type { DeploymentObject, FieldTree, FoundDeployment } from './kinds.ts';
import { FIELD_MANAGER } from './labels.ts';

/** Fields that are told; more are of no use to people. */
const MOST_FIELDS = 20;
/** Manager of the cluster's own controllers, among them the autoscaler. */
const CONTROLLERS = 'kube-controller-manager';

type Path = { name: string; key: string }[];

/**
 * Returns the fields of a release's Deployment that are no longer as we applied them. We own every field that we apply until somebody else
 * writes it, so that owners tell what changed, and by whom.
 */
export function driftOf(release: DeploymentObject, present: FoundDeployment): DriftedField[] {
  const owners = (present.metadata.managedFields ?? []).filter(({ subresource }) => subresource !== 'status');
  const ours = owners.find(({ manager, operation }) => manager === FIELD_MANAGER && operation === 'Apply')?.fieldsV1;
  const others = owners.filter(({ manager }) => manager !== FIELD_MANAGER);
  const lost: Path[] = [];
  const { labels, annotations } = release.metadata;
  const applied = { metadata: { labels, annotations }, spec: release.spec };
  const found = { metadata: present.metadata, spec: present.spec };
  collectLost({ applied, found, ours: ours ?? {}, path: [] }, lost);
  const object = `Deployment ${release.metadata.name}`;
  return lost.flatMap((path) => {
    const field = path
      .map(({ name }) => name)
      .join('')
      .slice(1);
    const manager = others.find(({ fieldsV1 }) => owns(fieldsV1 ?? {}, path))?.manager ?? null;
    return manager === CONTROLLERS && field === 'spec.replicas' ? [] : [{ object, field, manager }];
  });
}

interface Level {
  applied: unknown;
  found: unknown;
  ours: FieldTree;
  path: Path;
}

function collectLost({ applied, found, ours, path }: Level, lost: Path[]): void {
  if (lost.length >= MOST_FIELDS) return;
  for (const { name, key, value, present } of partsOf(applied, found)) {
    const here = [...path, { name, key }];
    const owned = ours[keyIn(ours, key, value)];
    // A field without fields of its own is owned as a whole.
    if (owned && (Object.keys(owned).every((one) => one === '.') || !isTree(value))) continue;
    if (owned) collectLost({ applied: value, found: present, ours: owned, path: here }, lost);
    else if (isTree(value) && isTree(present))
      collectLost({ applied: value, found: present, ours: {}, path: here }, lost);
    else if (!isEmpty(value) && !isDeepStrictEqual(value, present)) lost.push(here);
  }
}

interface Part {
  /** Name for people: `.replicas`, `[app]`. */
  name: string;
  /** Name in trees of fields: `f:replicas`; of an item its place is found by its keys. */
  key: string;
  value: unknown;
  present: unknown;
}

function partsOf(applied: unknown, found: unknown): Part[] {
  if (Array.isArray(applied))
    return applied.map((value: unknown, n) => {
      const items: unknown[] = Array.isArray(found) ? found : [];
      const name = nameOf(value);
      const present = items.find((item) => nameOf(item) === name) ?? items[n];
      return { name: `[${name ?? n}]`, key: `k:${n}`, value, present };
    });
  return Object.entries(applied as object)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ({
      name: /^[a-zA-Z0-9]+$/.test(name) ? `.${name}` : `["${name}"]`,
      key: `f:${name}`,
      value: value as unknown,
      present: (found as Record<string, unknown> | undefined)?.[name],
    }));
}

const nameOf = (item: unknown): string | undefined => {
  const { name, containerPort, mountPath } = (item ?? {}) as Record<string, unknown>;
  const known = mountPath ?? name ?? containerPort;
  return known === undefined ? undefined : String(known);
};

const isTree = (value: unknown): value is object => typeof value === 'object' && value !== null;
const isEmpty = (value: unknown): boolean => isTree(value) && Object.keys(value).length === 0;

/** Returns the name of a part in a tree: of an item the one whose keys it has. */
function keyIn(tree: FieldTree, key: string, value: unknown): string {
  if (!key.startsWith('k:') || !isTree(value)) return key;
  const matches = (name: string) => {
    if (!name.startsWith('k:')) return false;
    const keys = Object.entries(JSON.parse(name.slice(2)) as object);
    return keys.every(([field, wanted]) => wanted === (value as Record<string, unknown>)[field]);
  };
  return Object.keys(tree).find(matches) ?? key;
}

/** Returns whether a manager owns a field, or something in it. */
function owns(tree: FieldTree, path: Path): boolean {
  let here: FieldTree | undefined = tree;
  for (const { name, key } of path) {
    const item = key.startsWith('k:') ? name.slice(1, -1) : null;
    const found: string | undefined =
      item === null ? key : Object.keys(here).find((one) => one.startsWith('k:') && one.includes(item));
    here = found === undefined ? undefined : here[found];
    if (!here) return false;
  }
  return true;
}
