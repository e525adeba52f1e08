import { ACTIONS, includes, type Action, type Level, LEVELS } from '#platform/access/actions.ts';

/** Location of a thing, by which the permissions of a custom role are looked up. */
export interface Location {
  organizationId: string;
  projectId?: string;
  environmentId?: string;
  /** Mode of the environment, when the thing is in one. */
  mode?: string;
  clusterId?: string;
}

/** Policy of an API token: limits on what its role or scope allows. */
export interface Policy {
  allows(action: Action, at: Location): boolean;
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

/** Modes of environments: what a custom role tells apart in a project. */
export const ENVIRONMENT_MODES = ['DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING'] as const;

/** Rights of a caller in one organization. */
export interface Grant {
  organizationId: string;
  /** Level everywhere in the organization, unless `custom` says more exactly. */
  level: Level;
  roleId: string | null;
  custom: RolePermissions | null;
  /** Grant of a token's creator, for whom the token acts: the token never does more than they may now. */
  within?: Grant;
  /** Conditions of a policy token: each action has to pass them too. */
  policy?: Policy;
  /** Content of the organization, loaded for requests whose answers have rows of several locations (visibility.ts). */
  places?: Places;
}

/** Projects, environments and clusters of an organization. */
export interface Places {
  projects: (Location & { projectId: string })[];
  environments: (Location & { projectId: string; environmentId: string; mode: string; clusterId: string })[];
  clusters: (Location & { clusterId: string })[];
}

export type Origin = 'API' | 'CLI' | 'CONSOLE' | 'GIT' | 'QOVERY_INTERNAL' | 'SKILL' | 'TERRAFORM_PROVIDER';

/** Actor of a change: written into events, deployments and `last_updated_by`. */
export interface Actor {
  /** Id of the person; a token acts for its creator (docs/contributing/rules.md 10, 27). Null for the service itself. */
  userId: string | null;
  /** Id of the token that the person acts with; absent in a session. */
  tokenId?: string;
  /** Name shown in `triggered_by`. */
  name: string;
  origin: Origin;
  userAgent: string | null;
}

/** Authenticated caller. */
export interface Principal {
  /** Id of the token, or of the user. */
  id: string;
  /** Session of a person who signed in here; absent for tokens and for sessions of an identity provider. */
  sessionId?: string;
  kind: 'token' | 'user';
  userId: string;
  name: string;
  grants: Grant[];
}

const LEVEL_OF_PERMISSION: Record<'NO_ACCESS' | 'VIEWER' | 'DEPLOYER' | 'MANAGER', Level> = {
  NO_ACCESS: 'NONE',
  VIEWER: 'READ',
  DEPLOYER: 'DEPLOY',
  MANAGER: 'WRITE',
};

const lowest = (levels: Level[]): Level => LEVELS[Math.min(...levels.map((level) => LEVELS.indexOf(level)))]!;

/**
 * The level that a grant gives at a place. A custom role says it for projects, by the mode of the environment, and for clusters. It reads the
 * organization itself and modes that it leaves out of a project; projects that it does not name, and later ones, are closed to it.
 */
export function levelAt(grant: Grant, at: Location): Level {
  const own = grant.custom ? customLevelAt(grant.custom, at) : grant.level;
  return grant.within ? lowest([own, levelAt(grant.within, at)]) : own;
}

function customLevelAt(custom: RolePermissions, at: Location): Level {
  if (at.projectId !== undefined) return projectLevel(custom, at.projectId, at.mode);
  // An id that the role does not name, also an empty one, is of an unlisted cluster.
  if (at.clusterId !== undefined) return clusterLevel(custom, at.clusterId);
  return 'READ';
}

function projectLevel(custom: RolePermissions, projectId: string, mode: string | undefined): Level {
  const project = custom.projects.find((entry) => entry.project_id === projectId);
  if (!project) return 'NONE';
  if (project.is_admin) return 'ADMIN';
  const inMode = (wanted: string): Level => {
    const permissions = project.permissions.filter((entry) => entry.environment_type === wanted);
    return permissions.length === 0
      ? 'READ'
      : lowest(permissions.map((entry) => LEVEL_OF_PERMISSION[entry.permission]));
  };
  if (mode) return inMode(mode);
  // What belongs to the project itself (its variables, its name) reaches the environments of every mode, so that changing it
  // takes the right in all of them; a caller who sees one of them sees the project.
  const levels = ENVIRONMENT_MODES.map(inMode);
  return levels.some((level) => level !== 'NONE') && lowest(levels) === 'NONE' ? 'READ' : lowest(levels);
}

const LEVEL_ON_CLUSTER: Record<RolePermissions['clusters'][number]['permission'], Level> = {
  VIEWER: 'READ',
  ENV_CREATOR: 'WRITE',
  ADMIN: 'ADMIN',
};

/** Returns the level on a cluster. Unlisted clusters may host the environments that the role makes: VIEWER is what forbids it. */
function clusterLevel(custom: RolePermissions, clusterId: string): Level {
  const entries = custom.clusters.filter((entry) => entry.cluster_id === clusterId);
  const permissions = entries.length === 0 ? ['ENV_CREATOR' as const] : entries.map((entry) => entry.permission);
  return lowest(permissions.map((permission) => LEVEL_ON_CLUSTER[permission]));
}

/** Returns whether a grant differs between locations, so that each row of a list has to be checked. */
export const isLimited = (grant: Grant): boolean =>
  grant.custom !== null || grant.policy !== undefined || (grant.within !== undefined && isLimited(grant.within));

/** Returns the grant of a principal in an organization, if it has one. */
export const grantIn = (principal: Principal, organizationId: string): Grant | undefined =>
  principal.grants.find((grant) => grant.organizationId === organizationId);

/** Returns whether the principal may do the action at the place. */
export function permits(principal: Principal, action: Action, at: Location): boolean {
  if (!hasLevel(principal, action, at)) return false;
  return grantIn(principal, at.organizationId)!.policy?.allows(action, at) ?? true;
}

/** Returns whether the principal has the level for the action at the place, without regard to a token's policy. */
export function hasLevel(principal: Principal, action: Action, at: Location): boolean {
  const grant = grantIn(principal, at.organizationId);
  return grant !== undefined && includes(levelAt(grant, at), ACTIONS[action]);
}

/** Returns the origin of a request, by its `User-Agent` (docs/contributing/rules.md 42). */
export function originOf(userAgent: string | undefined): Origin {
  if (!userAgent) return 'API';
  if (/^CLI( |$)/.test(userAgent)) return 'CLI';
  if (/^Terraform provider( |$)/i.test(userAgent)) return 'TERRAFORM_PROVIDER';
  if (/^Mozilla\//.test(userAgent)) return 'CONSOLE';
  return 'API';
}
