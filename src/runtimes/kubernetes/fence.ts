import { requireHeld } from '#runtimes/attempt.ts';
import type { RuntimeContext, WorkloadIdentity } from '#runtimes/runtime.ts';
import { apply, find, list, remove, type Cluster, type Kind } from './cluster.ts';
import { isConflict } from './errors.ts';
import type { ClusterObject } from './kinds.ts';
import { namespaceOf } from './labels.ts';
import { nameOf } from './metadata.ts';
import { readRecord, requireNewest, type ServiceRecord } from './record/index.ts';

/** Number of times that objects are read again because they changed meanwhile. */
const TRIES = 50;

/** Right to change the objects of a service: a later deployment ends it, and a later attempt at the same one. */
export interface Fence {
  identity: WorkloadIdentity;
  /** Attempt that acts; absent where no other can follow. */
  context?: Pick<RuntimeContext, 'signal' | 'attempt'>;
  /** Objects that were read before the record was written for this fence. */
  ahead?: ObjectsAhead;
}

/** Objects by kind and name (`nameOf`). Each is used for one change: it has another version then. */
export type ObjectsAhead = Map<string, ClusterObject>;

/**
 * Reads objects of a service before its record is written: the write then tells that they may be changed in these versions, as long as it
 * succeeds. Objects that are not there have no version, and are left out.
 */
export async function readAhead(cluster: Cluster, objects: ClusterObject[]): Promise<ObjectsAhead> {
  const found = await Promise.all(
    objects.map(async (object) => {
      const { namespace, name } = object.metadata;
      return [nameOf(object), await find(cluster, object.kind, namespace, name)] as const;
    }),
  );
  return new Map(found.flatMap(([name, present]) => (present ? [[name, present] as const] : [])));
}

/** Returns the record of the service. Throws RuntimeError (`superseded`, `aborted`) unless its objects may still be changed. */
export async function requireCurrent(cluster: Cluster, { identity, context }: Fence): Promise<ServiceRecord | null> {
  if (context) requireHeld(context);
  const record = await readRecord(cluster, identity);
  requireNewest(record, identity.generation);
  return record;
}

/** Object that is changed, as it was read; null if it was not there. */
interface Found<T extends ClusterObject = ClusterObject> {
  present: T | null;
  /** True if the record was written since, which told that this version may be changed. */
  isAhead?: boolean;
}

/**
 * Changes objects that were read before the record told that they may be changed, and returns the answers. `change` has to name the version
 * that was read, so that the cluster refuses (409) what another process has changed since; all is read again then.
 */
async function changeFenced<T extends Found, R>(
  cluster: Cluster,
  fence: Fence,
  read: () => Promise<T[]>,
  change: (item: T, record: ServiceRecord | null) => Promise<R>,
): Promise<R[]> {
  for (let at = 1; ; at++) {
    const items = await read();
    const record = items.every(({ isAhead }) => isAhead) ? null : await requireCurrent(cluster, fence);
    const answers: R[] = [];
    try {
      for (const item of items) {
        if (fence.context) requireHeld(fence.context);
        answers.push(await change(item, record));
      }
      return answers;
    } catch (error) {
      if (!isConflict(error) || at === TRIES) throw error;
    }
  }
}

/** Returns the present state of an object that is to be applied. */
async function findFor<T extends ClusterObject>(
  cluster: Cluster,
  { ahead }: Fence,
  object: ClusterObject,
): Promise<Required<Found<T>>> {
  const known = ahead?.get(nameOf(object));
  if (!known) {
    const { namespace, name } = object.metadata;
    return { present: await find<T>(cluster, object.kind, namespace, name), isAhead: false };
  }
  ahead!.delete(nameOf(object));
  return { present: known as T, isAhead: true };
}

/** Applies an object to the one that was read: the cluster refuses (409) if it has changed since. */
export function applyTo<T extends ClusterObject>(
  cluster: Cluster,
  object: ClusterObject,
  present: ClusterObject | null,
): Promise<T> {
  const version = present?.metadata.resourceVersion;
  const metadata = { ...object.metadata, ...(version === undefined ? {} : { resourceVersion: version }) };
  return apply<T>(cluster, { ...object, metadata });
}

/** Applies objects of a service in their order, unless a later deployment or attempt was taken over. */
export async function applyFenced(cluster: Cluster, fence: Fence, objects: ClusterObject[]): Promise<void> {
  const read = async (object: ClusterObject) => ({ object, ...(await findFor(cluster, fence, object)) });
  await changeFenced(
    cluster,
    fence,
    () => Promise.all(objects.map(read)),
    ({ object, present }) => applyTo(cluster, object, present),
  );
}

/** Changes one object of a service, unless a later deployment or attempt was taken over. `change` gets it as it is, and has to name its version. */
export async function changeOneFenced<T extends ClusterObject>(
  cluster: Cluster,
  fence: Fence,
  object: ClusterObject,
  change: (present: T | null) => Promise<T>,
): Promise<T> {
  const read = async () => [await findFor<T>(cluster, fence, object)];
  const [changed] = await changeFenced(cluster, fence, read, ({ present }) => change(present));
  return changed!;
}

/** Object of a service by its kind and name. */
export interface Reference {
  kind: Kind;
  name: string;
}

/** Removes objects of a service, unless a later deployment or attempt was taken over. Succeeds for those that are gone. */
export async function removeFenced(cluster: Cluster, fence: Fence, references: Reference[]): Promise<void> {
  const namespace = namespaceOf(fence.identity);
  const read = async ({ kind, name }: Reference) => {
    const present = await find(cluster, kind, namespace, name);
    return present && !present.metadata.deletionTimestamp ? [{ kind, name, present }] : [];
  };
  await changeFenced(
    cluster,
    fence,
    async () => (await Promise.all(references.map(read))).flat(),
    ({ kind, name, present }) => remove(cluster, kind, namespace, name, present),
  );
}

/** Objects of a kind that are removed. */
interface Selection {
  kind: Kind;
  selector: string;
  isChosen(object: ClusterObject): boolean;
  /** Returns whether the record of the service keeps an object that was chosen. */
  isKept(object: ClusterObject, record: ServiceRecord | null): boolean;
}

/** Removes the objects of a selection, unless a later deployment or attempt was taken over. */
export async function removeSelected(
  cluster: Cluster,
  fence: Fence,
  { kind, selector, isChosen, isKept }: Selection,
): Promise<void> {
  const namespace = namespaceOf(fence.identity);
  const read = async () => (await list(cluster, kind, namespace, selector)).filter(isChosen);
  await changeFenced(
    cluster,
    fence,
    async () => (await read()).map((present) => ({ present })),
    async ({ present }, record) => {
      if (!isKept(present, record)) await remove(cluster, kind, namespace, present.metadata.name, present);
    },
  );
}
