import { MAX_POLICY_LENGTH } from '#platform/access/policy.ts';
import {
  DateTime,
  ListOf,
  Merge,
  Name,
  named,
  Nullable,
  OneOf,
  PageQuery,
  Type,
  Uuid,
  UuidOf,
} from '#platform/http/schema.ts';
import { RoleId } from '#resources/role/index.ts';

const Description = Type.Optional(Type.String({ maxLength: 2000 }));
const ExpiresAt = Type.Optional(Nullable(DateTime));

/** Place that a token is limited to. */
const PLACE = {
  project_id: Type.Optional(
    Nullable(
      Type.String({
        ...UuidOf('a project', 'GET /organization/{organizationId}/project'),
        description: 'Limits the token to a project. It is revoked when that is deleted.',
      }),
    ),
  ),
  environment_id: Type.Optional(
    Nullable(
      Type.String({
        ...UuidOf('an environment', 'GET /project/{projectId}/environment'),
        description: 'Limits the token to an environment. It is revoked when that is deleted.',
      }),
    ),
  ),
};

export const OrganizationApiTokenCreateRequest = named(
  'OrganizationApiTokenCreateRequest',
  Type.Object({
    name: Name,
    description: Description,
    scope: Type.Optional(
      Nullable(Type.String({ description: 'ADMIN, WRITE, DEPLOY or READ, in any case; required without role_id.' })),
    ),
    role_id: Type.Optional(
      Nullable(Type.String({ ...RoleId, description: 'Role of the token; required without a scope.' })),
    ),
    ...PLACE,
    expires_at: ExpiresAt,
  }),
);

const Common = Type.Object({
  id: Uuid,
  created_at: DateTime,
  updated_at: DateTime,
  name: Type.String(),
  description: Type.String(),
  role_name: Type.String(),
  role_id: Type.Optional(Uuid),
  creator_name: Nullable(Type.String()),
  expires_at: Nullable(DateTime),
  project_id: Type.Optional(Uuid),
  environment_id: Type.Optional(Uuid),
});

const Scope = OneOf(['ADMIN', 'WRITE', 'DEPLOY', 'READ']);
const Shown = Type.Object({ token: Type.String({ description: 'Shown this once and never again.' }) });

const ApiToken = Merge(Common, Type.Object({ scope: Type.Optional(Scope) }));
const OrganizationApiToken = named('OrganizationApiToken', ApiToken);
export const OrganizationApiTokenCreate = named('OrganizationApiTokenCreate', Merge(ApiToken, Shown));
export const OrganizationApiTokenList = ListOf(OrganizationApiToken);

export const ApiTokenQuery = Merge(
  PageQuery,
  Type.Object({
    name: Type.Optional(Type.String({ description: 'Only tokens with this in their name.' })),
    creatorName: Type.Optional(Type.String({ description: "Only tokens with this in their creator's name." })),
  }),
);

export const OrganizationPolicyApiTokenCreateRequest = named(
  'OrganizationPolicyApiTokenCreateRequest',
  Type.Object({
    name: Name,
    description: Description,
    opa_policy: Type.String({
      minLength: 1,
      maxLength: MAX_POLICY_LENGTH,
      description:
        'Rego: the rule `allow` decides on every action, with `input` {action, level, organization_id, project_id, environment_id, environment_mode, cluster_id}; what does not apply is left out.',
    }),
    role_id: Type.Optional(Nullable(RoleId)),
    ...PLACE,
    expires_at: ExpiresAt,
  }),
);

const PolicyApiToken = Merge(Common, Type.Object({ opa_policy: Type.String() }));
const OrganizationPolicyApiToken = named('OrganizationPolicyApiToken', PolicyApiToken);
export const OrganizationPolicyApiTokenCreate = named(
  'OrganizationPolicyApiTokenCreate',
  Merge(Merge(PolicyApiToken, Shown), Type.Object({ user_sub: Type.String() })),
);
export const OrganizationPolicyApiTokenList = ListOf(OrganizationPolicyApiToken);
