import { ACTIONS, includes, type Action, type Level, LEVELS } from '#platform/access/actions.ts';

/** Where a thing stands: what a custom role's permissions are looked up by. */
export interface Location {
  organizationId: string;
  projectId?: string;
  /** Mode of the environment, when the thing is in one. */
  mode?: string;
  clusterId?: string;
}

/** Custom role's permissions as stored in `role.permissions`. */
export interface RolePermissions {
  clusters: { cluster_id: string; permission: 'VIEWER' | 'ENV_CREATOR' | 'ADMIN' }[];
  projects: {
    project_id: string;
    is_admin: boolean;
    permissions: { environment_type: string; permission: 'NO_ACCESS' | 'VIEWER' | 'DEPLOYER' | 'MANAGER' }[];
  }[];
}

/** What a caller may do in one organization. */
export interface Grant {
  organizationId: string;
  /** Level everywhere in the organization, unless `custom` says more exactly. */
  level: Level;
  roleId: string | null;
  custom: RolePermissions | null;
}

export type Origin = 'API' | 'CLI' | 'CONSOLE' | 'GIT' | 'QOVERY_INTERNAL' | 'SKILL' | 'TERRAFORM_PROVIDER';

/** Who acts: written into events, deployments and `last_updated_by`. */
export interface Actor {
  /** The person; a token acts for its creator (decisions.md 10, 27). Null for the service itself. */
  userId: string | null;
  /** Name shown in `triggered_by`. */
  name: string;
  origin: Origin;
  userAgent: string | null;
}

/** An authenticated caller. */
export interface Principal {
  /** The token's id, or the user's. */
  id: string;
  kind: 'token' | 'user';
  userId: string;
  name: string;
  grants: Grant[];
}

const LEVEL_OF_PERMISSION: Record<string, Level> = {
  NO_ACCESS: 'NONE',
  VIEWER: 'READ',
  DEPLOYER: 'DEPLOY',
  MANAGER: 'WRITE',
};

const highest = (levels: Level[]): Level => LEVELS[Math.max(0, ...levels.map((level) => LEVELS.indexOf(level)))]!;

/** The level that a grant gives at a place. Every member reads the organization itself; a custom role decides on the rest. */
export function levelAt(grant: Grant, at: Location): Level {
  if (!grant.custom) return grant.level;
  if (at.projectId) {
    const project = grant.custom.projects.find((entry) => entry.project_id === at.projectId);
    // Unlisted projects: every role reads the whole of its organization, only an explicit NO_ACCESS forbids (decisions.md 7).
    if (!project) return 'READ';
    if (project.is_admin) return 'ADMIN';
    const permissions = at.mode
      ? project.permissions.filter((entry) => entry.environment_type === at.mode)
      : project.permissions;
    if (permissions.length === 0) return 'READ';
    return highest(permissions.map((entry) => LEVEL_OF_PERMISSION[entry.permission] ?? 'NONE'));
  }
  if (at.clusterId) {
    const cluster = grant.custom.clusters.find((entry) => entry.cluster_id === at.clusterId);
    return cluster?.permission === 'ADMIN' ? 'ADMIN' : 'READ';
  }
  return 'READ';
}

/** The grant of a principal in an organization, if it has one. */
export const grantIn = (principal: Principal, organizationId: string): Grant | undefined =>
  principal.grants.find((grant) => grant.organizationId === organizationId);

/** Whether the principal may do the action at the place. */
export function permits(principal: Principal, action: Action, at: Location): boolean {
  const grant = grantIn(principal, at.organizationId);
  return grant !== undefined && includes(levelAt(grant, at), ACTIONS[action]);
}

/** Where a request comes from, by its `User-Agent` (decisions.md 42). */
export function originOf(userAgent: string | undefined): Origin {
  if (!userAgent) return 'API';
  if (/^CLI( |$)/.test(userAgent)) return 'CLI';
  if (/^Terraform provider( |$)/i.test(userAgent)) return 'TERRAFORM_PROVIDER';
  if (/^Mozilla\//.test(userAgent)) return 'CONSOLE';
  return 'API';
}
