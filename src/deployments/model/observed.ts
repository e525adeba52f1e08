import type { DeploymentAction, Phase } from '#deployments/model/states.ts';

/** How a service is that something else than our deployments runs, as it was last read: an app of an Argo CD (docs/contributing/rules.md 39). */
export interface Observed {
  /** What was done last or is under way; null where nothing ever was. */
  action: DeploymentAction | null;
  /** How far that is; null where whoever runs it cannot tell. */
  phase: Phase | null;
  /** Whether it is what its source says. */
  current: boolean;
  startedAt: string | null;
  endedAt: string | null;
  /** Whatever its kind keeps besides. */
  more: Record<string, unknown>;
}
