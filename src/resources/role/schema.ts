import { ENVIRONMENT_MODES } from '#platform/access/principal.ts';
import { DateTime, ListOf, Name, named, OneOf, Type, Uuid, UuidOf } from '#platform/http/schema.ts';

/** Id by which requests name a role. */
export const RoleId = UuidOf('a role', 'GET /organization/{organizationId}/availableRole');

const ClusterPermission = OneOf(['VIEWER', 'ENV_CREATOR', 'ADMIN']);
const ProjectPermission = OneOf(['NO_ACCESS', 'VIEWER', 'DEPLOYER', 'MANAGER']);
const EnvironmentType = OneOf(ENVIRONMENT_MODES);

const OrganizationAvailableRole = named('OrganizationAvailableRole', Type.Object({ id: Uuid, name: Type.String() }));
export const OrganizationAvailableRoleList = ListOf(OrganizationAvailableRole);

export const OrganizationCustomRole = named(
  'OrganizationCustomRole',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    cluster_permissions: Type.Array(
      Type.Object({ cluster_id: Uuid, cluster_name: Type.String(), permission: ClusterPermission }),
    ),
    project_permissions: Type.Array(
      Type.Object({
        project_id: Uuid,
        project_name: Type.String(),
        is_admin: Type.Boolean(),
        permissions: Type.Array(Type.Object({ environment_type: EnvironmentType, permission: ProjectPermission })),
      }),
    ),
  }),
);
export const OrganizationCustomRoleList = ListOf(OrganizationCustomRole);

const Description = Type.Optional(Type.String({ maxLength: 2000 }));

// What an entry must have is checked in service.ts: the reference's document requires nothing of it.
const ClusterPermissions = Type.Array(
  Type.Object({ cluster_id: Type.Optional(Uuid), permission: Type.Optional(ClusterPermission) }),
  { maxItems: 10_000 },
);
const ProjectPermissions = Type.Array(
  Type.Object({
    project_id: Type.Optional(Uuid),
    is_admin: Type.Optional(Type.Boolean()),
    permissions: Type.Optional(
      Type.Array(
        Type.Object({
          environment_type: Type.Optional(EnvironmentType),
          permission: Type.Optional(ProjectPermission),
        }),
        { maxItems: 100 },
      ),
    ),
  }),
  { maxItems: 10_000 },
);

export const OrganizationCustomRoleCreateRequest = named(
  'OrganizationCustomRoleCreateRequest',
  Type.Object({
    name: Name,
    description: Description,
    cluster_permissions: Type.Optional(ClusterPermissions),
    project_permissions: Type.Optional(ProjectPermissions),
  }),
);

export const OrganizationCustomRoleUpdateRequest = named(
  'OrganizationCustomRoleUpdateRequest',
  Type.Object({
    name: Name,
    description: Description,
    cluster_permissions: Type.Optional(ClusterPermissions),
    project_permissions: Type.Optional(ProjectPermissions),
  }),
);
