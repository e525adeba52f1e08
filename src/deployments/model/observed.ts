import type { DeploymentAction, Phase } from '#deployments/model/states.ts';

/** State of a service that an external system runs, as last read: an app of an Argo CD (docs/contributing/rules.md 39). */
export interface Observed {
  /** Last action, ended or under way; null if there never was any. */
  action: DeploymentAction | null;
  /** Phase of that action; null if the external system cannot tell. */
  phase: Phase | null;
  /** True if the service is as its source says. */
  current: boolean;
  startedAt: string | null;
  endedAt: string | null;
  /** Further properties that its kind keeps. */
  more: Record<string, unknown>;
}
