/** Identity of what a runtime runs, and the handle by which it is found again. */

/** Identity of a workload. Every external object (process, container, network, directory) carries it. */
export interface WorkloadIdentity {
  /** Id of this installation of the control plane: objects of another installation are never touched. */
  installation: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  serviceId: string;
  /**
   * Generation, which grows with each deployment (epoch of the installation × 2^32 + number): a lower one never overwrites a higher one.
   */
  generation: number;
}

export type EnvironmentIdentity = Pick<WorkloadIdentity, 'installation' | 'environmentId'>;

/** Data by which another process finds the workload again. JSON, at most a few KB, without secrets. */
export interface Handle {
  /** Format of `data`, numbered by the runtime, which reads the present format and the one before. */
  format: number;
  runtime: string;
  identity: WorkloadIdentity;
  data: Record<string, unknown>;
}
