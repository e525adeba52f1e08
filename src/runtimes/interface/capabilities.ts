/** Features of runtimes and clusters. */
import type { Deployable, WorkloadSpec } from './specs.ts';
import { RuntimeError } from './errors.ts';

/** Name of a runtime. */
export type RuntimeName = 'host' | 'docker' | 'kubernetes' | 'fake';

/** Optional feature of a runtime; services list the features that they need (`service.requires`). */
export type RuntimeFeature =
  | 'builds'
  | 'registry-images'
  | 'machine-programs'
  | 'tasks'
  | 'host-address'
  | 'database-backups'
  | 'egress'
  | 'helm'
  | 'keda'
  | 'older-databases';

/** Features that a runtime can have. Those of a cluster are these without what its last check found missing (`featuresOf`). */
export const RUNTIME_FEATURES: Record<RuntimeName, readonly RuntimeFeature[]> = {
  host: ['builds', 'machine-programs', 'tasks', 'host-address', 'database-backups', 'egress'],
  docker: ['builds', 'registry-images', 'tasks', 'host-address', 'database-backups', 'egress'],
  kubernetes: ['builds', 'registry-images', 'tasks', 'host-address', 'database-backups', 'helm', 'keda'],
  fake: [
    'builds',
    'registry-images',
    'tasks',
    'host-address',
    'database-backups',
    'egress',
    'helm',
    'keda',
    'older-databases',
  ],
};

/** Name of the runtime that runs programs of the machine instead of images. */
export const MACHINE_RUNTIME = 'host' satisfies RuntimeName;

/** Findings of a check about what a runtime can do. Stored with the cluster: requests are judged by it before anything is queued. */
export interface Capabilities {
  /** Engine, version and mode (`Docker Engine 28.2`, `host, namespaces`). */
  description: string;
  /** Limits of this machine or cluster, with the remedy, a sentence each. */
  limits: string[];
  /** Features of the runtime that do not work now, each with its remedy, a sentence for people. */
  missing?: Partial<Record<RuntimeFeature, string>>;
}

export interface RuntimeReport extends Capabilities {
  ok: boolean;
}

/** Returns the sentence with which a runtime refuses a chart. */
export const noCharts = (runtime: RuntimeName): string =>
  `The runtime ${runtime} runs no Helm charts: move the service to an environment of a Kubernetes cluster.`;

/** Returns a workload. Throws RuntimeError `refused` for a chart, for runtimes that run none. */
export function requireWorkload(deployable: Deployable, runtime: RuntimeName): WorkloadSpec {
  switch (deployable.type) {
    case 'workload':
      return deployable;
    case 'helm':
      throw new RuntimeError('refused', noCharts(runtime));
  }
}

/** Returns the features of a cluster. Capabilities are null until the cluster was checked: it then has all that its runtime can have. */
export function featuresOf(runtime: string, capabilities: Pick<Capabilities, 'missing'> | null): RuntimeFeature[] {
  const all = RUNTIME_FEATURES[runtime as RuntimeName] ?? [];
  return all.filter((feature) => capabilities?.missing?.[feature] === undefined);
}
