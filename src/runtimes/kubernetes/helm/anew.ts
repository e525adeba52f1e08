import type { WorkloadIdentity } from '#runtimes/runtime.ts';
import type { ServiceRecord } from '../record/index.ts';

/** Seconds that the objects of a chart have to get ready where its record does not tell. */
const READY_SECONDS = 600;

/** Returns a record for a chart whose own was altered: what helm keeps itself is in the cluster. */
export const recordAnew = (
  { generation }: Pick<WorkloadIdentity, 'generation'>,
  hostname: string,
  isStopped = false,
): ServiceRecord => ({
  generation,
  hostname,
  serving: null,
  candidate: null,
  isStopped,
  chart: {
    attempt: 0,
    displayName: hostname,
    timeoutSeconds: READY_SECONDS,
    isDeployed: true,
    stopped: [],
    hooks: [],
  },
});
