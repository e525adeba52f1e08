-- What an organization has: clusters, projects, environments, stages, services, variables.

-- A machine on which clusters live (host runtime, Docker by socket).
create table node (
  id uuid primary key,
  name text not null,
  seen_at timestamptz not null default now()
);

create table cluster (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  runtime text not null check (runtime in ('host', 'docker', 'kubernetes', 'fake')),
  -- Clusters that live on one machine carry its node: only that node's worker claims their work.
  node_id uuid references node,
  region text not null default 'local',
  cloud_provider text not null default 'ON_PREMISE',
  is_default boolean not null default false,
  production boolean not null default false,
  spec jsonb not null default '{}',
  advanced_settings jsonb not null default '{}',
  state text not null default 'READY',
  version bigint not null default 1,
  last_reached_at timestamptz,
  last_deployment_at timestamptz,
  locked_at timestamptz,
  locked_by text,
  lock_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create unique index cluster_name on cluster (organization_id, lower(name));
create unique index cluster_default on cluster (organization_id) where is_default;

create table project (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  -- Moved by every write of what deployments read from here (variables, secrets).
  version bigint not null default 1,
  deleting boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create unique index project_name on project (organization_id, lower(name));

create table environment (
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  cluster_id uuid not null,
  name text not null,
  mode text not null check (mode in ('DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING')),
  expires_at timestamptz,
  last_updated_by uuid,
  version bigint not null default 1,
  -- Number of the newest deployment: numbers are given under this row's lock, because sequences do not commit in order.
  deployment_number bigint not null default 0,
  -- Set by DELETE: the row goes when the last service is torn down.
  deleting boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, project_id) references project (organization_id, id) on delete cascade,
  foreign key (organization_id, cluster_id) references cluster (organization_id, id)
);
create unique index environment_name on environment (project_id, lower(name));
create index environment_cluster on environment (cluster_id);
create index environment_expiry on environment (expires_at) where expires_at is not null;

create table deployment_stage (
  id uuid primary key,
  organization_id uuid not null,
  environment_id uuid not null,
  name text not null,
  description text not null default '',
  position integer not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  unique (environment_id, position) deferrable initially deferred,
  foreign key (organization_id, environment_id) references environment (organization_id, id) on delete cascade
);

create table service (
  id uuid primary key,
  organization_id uuid not null,
  environment_id uuid not null,
  stage_id uuid not null,
  kind text not null check (kind in ('APPLICATION', 'DATABASE', 'CONTAINER', 'JOB', 'HELM', 'TERRAFORM', 'ARGOCD_APP', 'AGENTIC_WORKFLOW')),
  name text not null,
  description text,
  icon_uri text not null,
  -- The kind's own configuration, in the shape of its `Spec` (services/kinds/<kind>/schema.ts).
  spec jsonb not null,
  advanced_settings jsonb not null default '{}',
  is_skipped boolean not null default false,
  -- Moved by every write of what deployments read from here.
  version bigint not null default 1,
  last_updated_by uuid,
  -- Facts, written by steps only (engine.md, *What is stored, what is derived*).
  wanted text not null default 'absent' check (wanted in ('absent', 'stopped', 'running')),
  handle jsonb,
  release_id uuid,
  -- A forced cancel left something that has to be known gone before anything is skipped.
  dirty boolean not null default false,
  -- A delete was requested: nothing but DELETE is accepted any more (decisions.md 16).
  deleting boolean not null default false,
  -- Newest commit of the branch that a webhook or a watcher recorded.
  newest_commit text,
  git_token_id uuid generated always as ((spec -> 'git_repository' ->> 'git_token_id')::uuid) stored,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, environment_id) references environment (organization_id, id),
  foreign key (organization_id, stage_id) references deployment_stage (organization_id, id)
);
create unique index service_name on service (environment_id, lower(name));
create index service_stage on service (stage_id);
create index service_git_token on service (git_token_id) where git_token_id is not null;

create table git_token (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  type text not null check (type in ('GITHUB', 'GITLAB', 'BITBUCKET')),
  -- Encrypted.
  token bytea not null,
  git_api_url text not null default '',
  workspace text,
  expired_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
alter table service add foreign key (organization_id, git_token_id) references git_token (organization_id, id);

-- Variables and secrets of projects, environments and services. Built-in ones are derived, never stored.
create table variable (
  id uuid primary key,
  organization_id uuid not null,
  key text not null,
  is_secret boolean not null,
  -- Plain value, or the upstream name of an external secret; null for secrets and aliases.
  value text,
  -- Encrypted value of a secret.
  secret_value bytea,
  -- Moves with each change of a secret's value: snapshots name secrets by version.
  value_version integer not null default 1,
  scope text not null check (scope in ('PROJECT', 'ENVIRONMENT', 'APPLICATION', 'CONTAINER', 'JOB', 'HELM', 'TERRAFORM', 'AGENTIC_WORKFLOW')),
  project_id uuid,
  environment_id uuid,
  service_id uuid,
  mount_path text,
  description text,
  enable_interpolation_in_file boolean not null default false,
  overridden_id uuid,
  aliased_id uuid,
  -- Key of a built-in variable that this one overrides or aliases: built-ins have no row to refer to.
  overridden_built_in text,
  aliased_built_in text,
  secret_manager_access_id uuid,
  owned_by text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  check (num_nonnulls(project_id, environment_id, service_id) = 1),
  check (num_nonnulls(overridden_id, overridden_built_in, aliased_id, aliased_built_in) <= 1),
  foreign key (organization_id, project_id) references project (organization_id, id) on delete cascade,
  foreign key (organization_id, environment_id) references environment (organization_id, id) on delete cascade,
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade,
  foreign key (organization_id, overridden_id) references variable (organization_id, id) on delete cascade,
  foreign key (organization_id, aliased_id) references variable (organization_id, id) on delete cascade
);
create unique index variable_key_project on variable (project_id, key, is_secret) where project_id is not null;
create unique index variable_key_environment on variable (environment_id, key, is_secret) where environment_id is not null;
create unique index variable_key_service on variable (service_id, key, is_secret) where service_id is not null;
create index variable_overridden on variable (overridden_id) where overridden_id is not null;
create index variable_aliased on variable (aliased_id) where aliased_id is not null;
