import type { DriftedField, WatchListener, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { FoundDeployment, Pod } from './kinds.ts';

/** Release of a record as observation needs it. */
interface ReleaseSummary {
  generation: number;
  replicas: number;
  hasPorts: boolean;
  /** True if the cluster chooses the number of pods. */
  isScaled: boolean;
}

/** Record as observation needs it. */
export interface RecordSummary {
  /** False for a record of an earlier release, which any account in the environment may have written. */
  isSealed: boolean;
  generation: number;
  isStopped: boolean;
  serving: ReleaseSummary | null;
  candidate: ReleaseSummary | null;
}

/** Deployment as it is kept. */
export interface KeptDeployment extends FoundDeployment {
  /** Digest that changes with the owners of fields, those of the status aside. */
  owners: string;
}

/** Objects of a service as they are kept. */
export interface KeptService {
  record: RecordSummary | null;
  deployment: KeptDeployment | null;
  service: { isOurs: boolean } | null;
  /** In no order. */
  pods: Pod[];
}

/** Objects of the installation that are kept while the cluster is followed. */
export interface KeptObjects {
  /** True while all kinds follow the cluster. */
  readonly isCurrent: boolean;
  /** Follows the cluster until the returned function is called by all users. */
  use(listener: WatchListener): () => void;
  /** Returns what is kept of a service; null unless the cluster is followed. */
  of(identity: WorkloadIdentity, hostname: string): KeptService | null;
  /** Returns the drift that was found with these owners of fields; undefined if they were not looked at. */
  driftOf(serviceId: string, owners: string): DriftedField[] | undefined;
  noteDrift(serviceId: string, owners: string, drift: DriftedField[]): void;
}
