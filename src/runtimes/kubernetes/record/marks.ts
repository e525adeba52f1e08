import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import { find, pathOf, type Cluster } from '../cluster.ts';
import { unlessGone } from '../errors.ts';
import { Findings } from '../findings.ts';
import type { ClusterObject } from '../kinds.ts';
import { namespaceOf } from '../labels.ts';

/** Beginning of the annotations of a namespace that name the services whose records are sealed. Nobody with rights within it changes them. */
const SEALED = 'quarterdeck.sealed/';

const marksIn = (namespace: ClusterObject | null): ReadonlySet<string> =>
  new Set(
    Object.keys(namespace?.metadata.annotations ?? {})
      .filter((name) => name.startsWith(SEALED))
      .map((name) => name.slice(SEALED.length)),
  );

/** Returns whether a service's record must have a seal: it was written with one before. */
export const mustBeSealed = async (cluster: Cluster, identity: WorkloadIdentity): Promise<boolean> =>
  isMarked(await find(cluster, 'Namespace', undefined, namespaceOf(identity)), identity);

export const isMarked = (
  namespace: ClusterObject | null,
  { serviceId }: Pick<WorkloadIdentity, 'serviceId'>,
): boolean => marksIn(namespace).has(serviceId);

/** Services of namespaces whose records must have a seal, where they only tell what is shown. */
const marks = new Findings((cluster, namespace) => find(cluster, 'Namespace', undefined, namespace).then(marksIn));

/** Returns the services of a namespace whose records must have a seal, as they were within the last 30 seconds. */
export const recentMarks = (cluster: Cluster, namespace: string): Promise<ReadonlySet<string>> =>
  marks.recent(cluster, namespace);

/** Notes that the record of a service has a seal from now on: one without is not used any more. */
export const noteSealed = (cluster: Cluster, identity: WorkloadIdentity): Promise<void> => mark(cluster, identity, '1');

/** Removes the mark of a service that is removed. */
export const forgetSealed = (cluster: Cluster, identity: WorkloadIdentity): Promise<void> =>
  mark(cluster, identity, null);

async function mark(cluster: Cluster, identity: WorkloadIdentity, value: string | null): Promise<void> {
  const namespace = namespaceOf(identity);
  await unlessGone(
    cluster.connection.call('PATCH', pathOf('Namespace', undefined, namespace), {
      body: { metadata: { annotations: { [`${SEALED}${identity.serviceId}`]: value } } },
      type: 'application/merge-patch+json',
    }),
  );
  marks.forget(cluster, namespace);
}
