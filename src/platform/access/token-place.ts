import { ACTIONS, type Action } from '#platform/access/actions.ts';
import type { Location, Policy } from '#platform/access/principal.ts';

/** Project that a token is limited to, or the environment in it. */
export interface TokenPlace {
  projectId: string;
  /** Null for the whole project. */
  environmentId: string | null;
}

/**
 * Returns the conditions of a token that is limited to a place. It does there what its scope allows, reads what stands above, such as its
 * organization and the clusters, and finds nothing of other projects. One for a project makes environments on the clusters.
 */
export const policyOfPlace = ({ projectId, environmentId }: TokenPlace): Policy => ({
  allows(action: Action, at: Location): boolean {
    if (at.projectId === undefined)
      return ACTIONS[action] === 'READ' || (action === 'cluster.use' && environmentId === null);
    if (at.projectId !== projectId) return false;
    if (environmentId === null || at.environmentId === environmentId) return true;
    return at.environmentId === undefined && ACTIONS[action] === 'READ';
  },
});
