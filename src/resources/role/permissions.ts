import { invalidField } from '#kernel/errors.ts';
import { ENVIRONMENT_MODES, type RolePermissions } from '#platform/access/principal.ts';

type Cluster = RolePermissions['clusters'][number];
type Project = RolePermissions['projects'][number];

/** Permissions of a custom role as requests give them; required fields of an entry are checked here. */
export interface PermissionsInput {
  cluster_permissions?: Partial<Cluster>[];
  project_permissions?: {
    project_id?: string;
    is_admin?: boolean;
    permissions?: Partial<Project['permissions'][number]>[];
  }[];
}

/** Clusters and projects of the organization. */
export interface Places {
  clusters: { id: string; name: string }[];
  projects: { id: string; name: string }[];
}

/**
 * The permissions to store: a list that is given replaces the present one. Throws 400 that names an entry that says too little,
 * says something twice, or names what is not the organization's.
 */
export function toPermissions(input: PermissionsInput, present: RolePermissions, places: Places): RolePermissions {
  return {
    clusters: input.cluster_permissions ? toClusters(input.cluster_permissions, places) : present.clusters,
    projects: input.project_permissions ? toProjects(input.project_permissions, places) : present.projects,
  };
}

function toClusters(entries: Partial<Cluster>[], places: Places): Cluster[] {
  const known = idsOf(places.clusters);
  const seen = new Set<string>();
  return entries.map((entry, at) => {
    const field = `cluster_permissions[${at}]`;
    const cluster_id = requireId(entry.cluster_id, `${field}.cluster_id`, 'cluster', known, seen);
    return { cluster_id, permission: required(entry.permission, `${field}.permission`) };
  });
}

function toProjects(entries: NonNullable<PermissionsInput['project_permissions']>, places: Places): Project[] {
  const known = idsOf(places.projects);
  const seen = new Set<string>();
  return entries.map((entry, at) => {
    const field = `project_permissions[${at}]`;
    const project_id = requireId(entry.project_id, `${field}.project_id`, 'project', known, seen);
    const modes = new Set<string>();
    const permissions = (entry.permissions ?? []).map((one, index) => {
      const place = `${field}.permissions[${index}]`;
      const environment_type = required(one.environment_type, `${place}.environment_type`);
      if (modes.has(environment_type))
        throw invalidField(`${place}.environment_type`, `${environment_type} is there twice: give it once`);
      modes.add(environment_type);
      return { environment_type, permission: required(one.permission, `${place}.permission`) };
    });
    return { project_id, is_admin: entry.is_admin ?? false, permissions };
  });
}

const idsOf = (places: { id: string }[]): Set<string> => new Set(places.map((place) => place.id));

function requireId(id: string | undefined, field: string, what: string, known: Set<string>, seen: Set<string>): string {
  const given = required(id, field);
  if (!known.has(given)) throw invalidField(field, `names no ${what} of this organization`);
  if (seen.has(given)) throw invalidField(field, `this ${what} is there twice: give it once`);
  seen.add(given);
  return given;
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw invalidField(field, 'is required');
  return value;
}

/**
 * The permissions as they are answered: whole, with every cluster, project and mode. What the role leaves unsaid is what it has
 * there all the same (principal.ts): clients send the whole back. `places` are those that the caller sees.
 */
export const toPermissionsView = (permissions: RolePermissions, places: Places) => ({
  cluster_permissions: places.clusters.map((cluster) => ({
    cluster_id: cluster.id,
    cluster_name: cluster.name,
    permission: permissions.clusters.find((entry) => entry.cluster_id === cluster.id)?.permission ?? 'ENV_CREATOR',
  })),
  project_permissions: places.projects.map((project) => {
    const said = permissions.projects.find((entry) => entry.project_id === project.id);
    return {
      project_id: project.id,
      project_name: project.name,
      is_admin: said?.is_admin ?? false,
      permissions: ENVIRONMENT_MODES.map((mode) => ({
        environment_type: mode,
        permission:
          said?.permissions.find((entry) => entry.environment_type === mode)?.permission ??
          (said ? 'VIEWER' : 'NO_ACCESS'),
      })),
    };
  }),
});
