import type {} from 'vitest';
import type { TestProject } from 'vitest/node';
import { findOrStartCluster } from '#test/harness/kubernetes-cluster.ts';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Kubernetes cluster of this run. */
    kubernetes: TestCluster;
  }
}

/** Provides a Kubernetes cluster for a whole run of the project `kubernetes`. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { cluster, stop } = await findOrStartCluster(process.env);
  project.provide('kubernetes', cluster);
  return stop;
}
