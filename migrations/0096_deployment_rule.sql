-- When environments run: rules of a project that new environments get by their names, and the one that each environment has.

create table project_deployment_rule (
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text,
  mode text not null check (mode in ('DEVELOPMENT', 'PREVIEW', 'PRODUCTION', 'STAGING')),
  cluster_id uuid not null,
  auto_stop boolean not null,
  timezone text not null,
  -- Times on the clocks of the zone; the dates and the UTC of the columns mean nothing.
  start_time timestamptz not null,
  stop_time timestamptz not null,
  weekdays text[] not null,
  wildcard text not null,
  -- The first one whose wildcard matches is applied.
  position integer not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  unique (project_id, position) deferrable initially deferred,
  foreign key (organization_id, project_id) references project (organization_id, id) on delete cascade,
  -- What would put environments on a cluster that is gone is gone with it.
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
create index project_deployment_rule_cluster on project_deployment_rule (organization_id, cluster_id);

create table environment_deployment_rule (
  id uuid primary key,
  organization_id uuid not null,
  environment_id uuid not null unique,
  auto_stop boolean not null default false,
  auto_preview boolean not null default false,
  on_demand_preview boolean not null default false,
  timezone text not null default 'UTC',
  start_time timestamptz not null default '1970-01-01T08:00:00Z',
  stop_time timestamptz not null default '1970-01-01T19:00:00Z',
  weekdays text[] not null default '{MONDAY,TUESDAY,WEDNESDAY,THURSDAY,FRIDAY}',
  -- When it is to be looked at next: the next beginning or end of its hours; null where there is none or nothing is stopped.
  next_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, environment_id) references environment (organization_id, id) on delete cascade
);
create index environment_deployment_rule_due on environment_deployment_rule (next_at) where next_at is not null;

insert into environment_deployment_rule (id, organization_id, environment_id)
select gen_random_uuid(), organization_id, id from environment;
