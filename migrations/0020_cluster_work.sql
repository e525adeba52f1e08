-- Work on clusters and what is told of it, locks that end by themselves, what a cluster keeps secret.

alter table cluster
  -- Last state that wasn't on the way to another one.
  add column settled_state text not null default 'READY',
  -- Configuration version that was last deployed with success.
  add column deployed_version bigint,
  -- What the runtime called itself when it was last reached.
  add column engine_version text,
  add column credentials_id uuid,
  add column credentials_name text,
  add column routing_table jsonb not null default '[]',
  add column dns_provider jsonb,
  add column lock_ttl_days integer,
  add column lock_expires_at timestamptz,
  -- Number of the newest work: given under this row's lock.
  add column work_number bigint not null default 0;
create index cluster_credentials on cluster (credentials_id) where credentials_id is not null;
create index cluster_lock_expiry on cluster (lock_expires_at) where lock_expires_at is not null;

-- The queue of what is to be done with clusters: one at a time, apart from the deployments on them.
create table cluster_work (
  id uuid primary key,
  organization_id uuid not null,
  cluster_id uuid not null,
  number bigint not null,
  action text not null check (action in ('DEPLOY', 'DRY_RUN', 'UPGRADE', 'STOP')),
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  outcome text check (outcome in ('SUCCESS', 'ERROR')),
  error text,
  requested_by uuid,
  requested_by_name text not null,
  origin text not null,
  user_agent text,
  claim_token uuid,
  lease_until timestamptz,
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (cluster_id, number),
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
create unique index cluster_work_running on cluster_work (cluster_id) where status = 'RUNNING';
create index cluster_work_open on cluster_work (created_at) where status <> 'ENDED';

create table cluster_log (
  work_id uuid not null references cluster_work on delete cascade,
  sequence integer not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  step text not null,
  message text not null,
  is_error boolean not null default false,
  -- What would mend an error.
  hint text,
  primary key (work_id, sequence)
);
create index cluster_log_feed on cluster_log (cluster_id, at);

-- Kubeconfig, token of the DNS provider.
create table cluster_secret (
  organization_id uuid not null,
  cluster_id uuid not null,
  name text not null check (name in ('kubeconfig', 'dns')),
  -- Encrypted.
  value bytea not null,
  updated_at timestamptz not null default now(),
  primary key (cluster_id, name),
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);

-- Where external secrets of variables are read from (decisions.md 34).
create table secret_manager_access (
  id uuid primary key,
  organization_id uuid not null,
  cluster_id uuid not null,
  name text not null,
  endpoint jsonb not null,
  -- Without its secret part.
  authentication jsonb not null,
  -- Encrypted: secret key or JSON credentials, if the authentication has one.
  secret bytea,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
create index secret_manager_access_cluster on secret_manager_access (cluster_id);
