import { SERVICE_KINDS } from '#kernel/kinds.ts';
import { ENVIRONMENT_MODES } from '#platform/access/principal.ts';
import {
  DateTime,
  ListOf,
  Merge,
  Name,
  named,
  Nullable,
  OneOf,
  PageQuery,
  Pagination,
  Reference,
  Type,
  Uuid,
  type Static,
} from '#platform/http/schema.ts';

/** Word that clients show: no plan limits anything here. */
export const Plan = OneOf([
  'FREE',
  'TEAM',
  'TEAM_YEARLY',
  'ENTERPRISE',
  'ENTERPRISE_YEARLY',
  'PROFESSIONAL',
  'BUSINESS',
  'USER_2025',
  'TEAM_2025',
  'BUSINESS_2025',
  'ENTERPRISE_2025',
]);

const Text = Type.Optional(Nullable(Type.String({ maxLength: 2000 })));
const AdminEmails = Type.Optional(
  Nullable(Type.Array(Type.String({ format: 'email', maxLength: 320 }), { maxItems: 100 })),
);

const details = {
  description: Text,
  plan: Type.Optional(Plan),
  website_url: Text,
  repository: Text,
  logo_url: Text,
  icon_url: Text,
  admin_emails: AdminEmails,
};

export const OrganizationRequest = named('OrganizationRequest', Type.Object({ name: Name, ...details }));
export const OrganizationEditRequest = named('OrganizationEditRequest', Type.Object({ name: Name, ...details }));

export const Organization = named(
  'Organization',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Nullable(Type.String()),
    plan: Plan,
    website_url: Nullable(Type.String()),
    repository: Nullable(Type.String()),
    logo_url: Nullable(Type.String()),
    icon_url: Nullable(Type.String()),
    admin_emails: Nullable(Type.Array(Type.String())),
    owner: Type.Optional(Uuid),
    billing_deployment_restriction: Nullable(Type.String()),
    organization_plan: Type.Object({ plan: Plan, audit_logs_retention_in_days: Type.Integer() }),
  }),
);

/** With one organization its fields stand at the top level too (docs/contributing/rules.md 2). */
export const OrganizationList = named(
  'OrganizationList',
  Type.Object({
    results: Type.Array(Organization),
    pagination: Pagination,
    id: Type.Optional(Uuid),
    name: Type.Optional(Type.String()),
    created_at: Type.Optional(DateTime),
    updated_at: Type.Optional(DateTime),
  }),
);

export const ServiceType = OneOf(SERVICE_KINDS);

export const ServiceLight = named(
  'ServiceLight',
  Type.Object({
    id: Uuid,
    name: Type.String(),
    description: Type.String(),
    icon_uri: Type.String(),
    service_type: ServiceType,
    project_id: Uuid,
    project_name: Type.String(),
    environment_id: Uuid,
    environment_name: Type.String(),
    cluster_id: Uuid,
    job_type: Type.Optional(OneOf(['CRON', 'LIFECYCLE'])),
  }),
);
export type ServiceLight = Static<typeof ServiceLight>;
export const ServiceLightList = ListOf(ServiceLight);

export const ServicesQuery = Merge(
  PageQuery,
  Type.Object({
    project_id: Type.Optional(Nullable(Uuid)),
    environment_id: Type.Optional(Nullable(Uuid)),
    cluster_id: Type.Optional(Uuid),
  }),
);

const OrganizationEnvironment = named(
  'OrganizationEnvironment',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    organization: Reference,
    project: Reference,
    mode: OneOf(ENVIRONMENT_MODES),
    cluster_id: Uuid,
  }),
);
export const OrganizationEnvironmentList = ListOf(OrganizationEnvironment);

/** Fields of a service that uses something. */
export const serviceUse = {
  project_id: Uuid,
  project_name: Type.String(),
  environment_id: Uuid,
  environment_name: Type.String(),
  service_id: Uuid,
  service_name: Type.String(),
};

const Part = Type.Optional(Type.String());
const Unregistered = Type.Optional(
  Type.String({ description: 'Empty: storing credentials registers no application in Azure.' }),
);

/** Credentials as they are answered, without secrets; `object_type` decides which fields there are. */
export const ClusterCredentials = named(
  'ClusterCredentials',
  Type.Object({
    id: Uuid,
    name: Type.String(),
    object_type: OneOf([
      'AWS',
      'AWS_ROLE',
      'EKS_ANYWHERE_VSPHERE',
      'SCW',
      'OTHER',
      'AZURE',
      'GCP',
      'GCP_WORKLOAD_IDENTITY_FEDERATION',
    ]),
    access_key_id: Type.Optional(Nullable(Type.String())),
    role_arn: Type.Optional(Nullable(Type.String())),
    scaleway_access_key: Part,
    scaleway_project_id: Part,
    scaleway_organization_id: Part,
    vsphere_user: Part,
    azure_subscription_id: Part,
    azure_tenant_id: Part,
    azure_application_id: Unregistered,
    azure_application_object_id: Unregistered,
    project_id: Part,
    service_account_email: Part,
    workload_identity_provider_resource: Part,
    token_lifetime_seconds: Type.Optional(Type.Integer()),
  }),
);

export const OrganizationCredentials = named(
  'OrganizationCredentials',
  Type.Object({
    credential: ClusterCredentials,
    clusters: Type.Array(
      Type.Object({
        id: Uuid,
        name: Type.String(),
        cloud_provider: OneOf(['AWS', 'SCW', 'GCP', 'ON_PREMISE', 'AZURE']),
      }),
    ),
  }),
);
export type OrganizationCredentials = Static<typeof OrganizationCredentials>;
export const OrganizationCredentialsList = ListOf(OrganizationCredentials);
