import type { ClusterObject, DeploymentObject } from '../kinds.ts';

/** Release as the record keeps it. It holds no secret. */
export interface KeptRelease {
  generation: number;
  deployment: DeploymentObject;
  /** Object by which the cluster chooses the number of pods; absent for a fixed number. */
  autoscaler?: ClusterObject;
  /** Names of the release's other objects (`Service/app-z1`); absent from records of releases that did not keep them. */
  objects?: string[];
  /** Objects of these names, by which the release is made whole again; absent from records of releases that did not keep them. */
  manifests?: ClusterObject[];
}

/** Record of a service, beside its objects in its namespace. It is written before anything else is changed. */
export interface ServiceRecord {
  /** Generation that was taken over last; a lower one is refused. A restart begins again with that of its release. */
  generation: number;
  hostname: string;
  /** Release that was rolled out last; null before the first. */
  serving: KeptRelease | null;
  /** Release that is being rolled out; null if none is. */
  candidate: KeptRelease | null;
  /** True if the serving release was stopped. A candidate that is taken back leaves it so. */
  isStopped: boolean;
  /** Names of objects that may be there besides the Deployment; a new release removes those that it does not have. */
  made?: string[];
  /** Present for a service that is a Helm chart; it has neither a serving release nor a candidate. */
  chart?: ChartRecord;
}

/** State of a chart that helm does not keep itself. */
export interface ChartRecord {
  /** Highest number of an attempt at the deployment of `generation`. */
  attempt: number;
  displayName: string;
  /** Seconds that its objects have to get ready. */
  timeoutSeconds: number;
  /** True if helm applied the chart of a generation with success. */
  isDeployed: boolean;
  /** Sizes that a stop took away. */
  stopped: { kind: string; name: string; replicas: number | null }[];
  /** Objects of hooks, which helm does not remove. */
  hooks: { collection: string; name: string }[];
}
