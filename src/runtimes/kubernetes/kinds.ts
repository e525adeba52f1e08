/** Shapes of the cluster's objects, as far as we write or read them. */
interface Metadata {
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  resourceVersion?: string;
  uid?: string;
  /** Grows with each change of the object's specification. */
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  /** Owners of fields, by field manager. */
  managedFields?: FieldsOwner[];
}

/** Fields of an object that a manager owns. */
interface FieldsOwner {
  manager?: string;
  operation?: 'Apply' | 'Update';
  /** Part of the object that was written, such as `status`. */
  subresource?: string;
  /** Names of fields as a tree: `f:` before a field, `k:` before the keys of an item, `v:` before a value. */
  fieldsV1?: FieldTree;
}

export interface FieldTree {
  [name: string]: FieldTree;
}

export interface ClusterObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [part: string]: unknown;
}

export interface List<T> {
  metadata: { continue?: string; remainingItemCount?: number; resourceVersion?: string };
  items: T[];
}

export type Container = { name: string; image: string } & Record<string, unknown>;

export interface Template {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { containers: Container[] } & Record<string, unknown>;
}

export interface DeploymentObject extends ClusterObject {
  /** Without a number of replicas, an autoscaler of the cluster chooses it. */
  spec: { replicas?: number; progressDeadlineSeconds: number; template: Template } & Record<string, unknown>;
}

export interface Condition {
  type: string;
  /** Generation of the object that the condition is about. */
  observedGeneration?: number;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

/** Deployment as the cluster answers it. */
export interface FoundDeployment extends DeploymentObject {
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    conditions?: Condition[];
  };
}

export interface Job extends ClusterObject {
  spec: { suspend?: boolean; template: Template } & Record<string, unknown>;
  status?: { startTime?: string; conditions?: Condition[] };
}

/** Event that the cluster tells of an object. */
export interface ClusterEvent extends ClusterObject {
  type?: string;
  reason?: string;
  message?: string;
}

export interface Ended {
  exitCode: number;
  signal?: number;
  reason?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
}

export interface ContainerState {
  running?: { startedAt: string };
  waiting?: { reason?: string; message?: string };
  terminated?: Ended;
}

export interface Pod extends ClusterObject {
  spec: {
    nodeName?: string;
    activeDeadlineSeconds?: number;
    containers?: unknown[];
    initContainers?: unknown[];
    ephemeralContainers?: unknown[];
  } & Record<string, unknown>;
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    reason?: string;
    message?: string;
    podIP?: string;
    conditions?: Condition[];
    containerStatuses?: {
      name: string;
      ready: boolean;
      restartCount: number;
      state?: ContainerState;
      lastState?: ContainerState;
    }[];
  };
}

export interface ConfigMap extends ClusterObject {
  data?: Record<string, string>;
}

/** Addresses of the pods that a Service leads to. */
export interface EndpointSlice extends ClusterObject {
  endpoints: { addresses: string[]; conditions: { ready?: boolean } }[] | null;
  ports: { port: number }[] | null;
}
