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
  /** Owners of fields, by field manager. */
  managedFields?: { manager?: string; fieldsV1?: Record<string, unknown> }[];
}

export interface ClusterObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [part: string]: unknown;
}

export interface List<T> {
  metadata: { continue?: string; remainingItemCount?: number };
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

export interface Ended {
  exitCode: number;
  signal?: number;
  reason?: string;
  message?: string;
  finishedAt?: string;
}

export interface ContainerState {
  running?: { startedAt: string };
  waiting?: { reason?: string; message?: string };
  terminated?: Ended;
}

export interface Pod extends ClusterObject {
  spec: { nodeName?: string } & Record<string, unknown>;
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
