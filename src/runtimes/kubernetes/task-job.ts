import { find, pathOf, type Cluster } from './cluster.ts';
import { ApiError } from './errors.ts';
import type { Job } from './kinds.ts';
import { FIELD_MANAGER } from './labels.ts';

/** Change of a Job. */
interface JobChange {
  metadata?: { annotations: Record<string, string> };
  spec: { suspend?: boolean };
}

/** Changes a Job; null if it is gone or another one has its name now. */
export async function patchJob(cluster: Cluster, { metadata }: Job, change: JobChange): Promise<Job | null> {
  const body = { ...change, metadata: { ...change.metadata, uid: metadata.uid } };
  try {
    return await cluster.connection.call<Job>('PATCH', pathOf('Job', metadata.namespace, metadata.name), {
      body,
      type: 'application/merge-patch+json',
      query: { fieldManager: FIELD_MANAGER },
    });
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return null;
    // The cluster calls another id an invalid change.
    const present = await find<Job>(cluster, 'Job', metadata.namespace, metadata.name);
    if (present?.metadata.uid !== metadata.uid) return null;
    throw error;
  }
}
