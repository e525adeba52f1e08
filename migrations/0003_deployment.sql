-- What was asked for and what became of it. The table of deployments is the queue.

create table deployment (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  environment_id uuid not null,
  cluster_id uuid not null,
  number bigint not null,
  action text not null check (action in ('DEPLOY', 'STOP', 'RESTART', 'DELETE', 'UNINSTALL')),
  -- Which call asked for it (DEPLOY, REDEPLOY, …): the audit events and the histories say so.
  trigger text not null,
  -- Whole environment, or some of its services: the state of an environment leaves deletes of single services aside.
  whole_environment boolean not null,
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'RECAP', 'ENDED')),
  -- Set at the end.
  outcome text check (outcome in ('SUCCESS', 'ERROR', 'CANCELED')),
  format integer not null default 1,
  snapshot jsonb not null,
  resolution jsonb,
  plan jsonb,
  requested_by uuid,
  requested_by_name text not null,
  origin text not null,
  automatic boolean not null default false,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  cancel_requested_at timestamptz,
  cancel_forced boolean not null default false,
  error text,
  -- The claim: which worker has it, fenced by a token, with a lease by the database's clock.
  worker_id bigint,
  claim_token uuid,
  lease_until timestamptz,
  attempts integer not null default 0,
  updated_at timestamptz not null default now(),
  unique (environment_id, number),
  unique (organization_id, id),
  foreign key (organization_id, environment_id) references environment (organization_id, id) on delete cascade
);
-- One deployment runs per environment.
create unique index deployment_running on deployment (environment_id) where status in ('RUNNING', 'RECAP');
create index deployment_waiting on deployment (environment_id, number) where status = 'WAITING';
create index deployment_active on deployment (status, created_at) where status <> 'ENDED';

create table deployment_service (
  deployment_id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  number bigint not null,
  -- No foreign key: histories outlive the service.
  service_id uuid not null,
  kind text not null,
  name text not null,
  icon_uri text not null,
  stage_id uuid not null,
  stage_name text not null,
  stage_position integer not null,
  action text not null,
  sub_action text not null default 'NONE',
  state text not null,
  commit jsonb,
  details jsonb not null default '{}',
  error text,
  started_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (deployment_id, service_id),
  foreign key (organization_id, deployment_id) references deployment (organization_id, id) on delete cascade
);
create index deployment_service_history on deployment_service (service_id, number desc);
create index deployment_service_environment on deployment_service (environment_id, number desc);

create table deployment_step (
  deployment_id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  position integer not null,
  name text not null,
  status text not null check (status in ('STARTED', 'SUCCESS', 'ERROR', 'CANCEL', 'SKIP')),
  attempts integer not null default 1,
  output jsonb,
  error text,
  started_at timestamptz not null,
  ended_at timestamptz,
  primary key (deployment_id, service_id, position),
  foreign key (deployment_id, service_id) references deployment_service on delete cascade
);

-- What was last applied with success, and the ones before it that are kept.
create table release (
  id uuid primary key,
  organization_id uuid not null,
  service_id uuid not null,
  deployment_id uuid not null,
  service_version bigint not null,
  environment_version bigint not null,
  project_version bigint not null,
  -- The service's part of the snapshot.
  snapshot jsonb not null,
  resolution jsonb not null default '{}',
  image text,
  build_key text,
  created_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index release_service on release (service_id, created_at desc);
alter table service add foreign key (organization_id, release_id) references release (organization_id, id) deferrable initially deferred;

create table deployment_log (
  deployment_id uuid not null,
  organization_id uuid not null,
  sequence bigint not null,
  service_id uuid,
  -- Compressed JSON lines, at most 64 KB before compression.
  content bytea not null,
  lines integer not null,
  created_at timestamptz not null default now(),
  primary key (deployment_id, sequence),
  foreign key (organization_id, deployment_id) references deployment (organization_id, id) on delete cascade
);

-- Ids of workers; each holds an advisory lock on its own while it lives.
create sequence worker_number;
