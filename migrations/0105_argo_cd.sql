-- Argo CD: where a cluster's own one is, which of its destinations are clusters of ours, and what was last read of it.

create table argo_cd (
  id uuid primary key,
  organization_id uuid not null,
  -- The cluster whose Argo CD it is: one each.
  cluster_id uuid not null unique,
  url text not null,
  -- Encrypted.
  token bytea not null,
  status text not null check (status in ('connected', 'error')),
  reason text check (reason in ('authentication_failed', 'unreachable', 'insufficient_permissions')),
  -- Why it could not be read, for people.
  message text,
  last_checked_at timestamptz,
  -- When it last told its apps.
  reached_at timestamptz,
  -- Who reads it now, until when, and when it is read next. A changed configuration takes the claim away.
  claim_token uuid,
  lease_until timestamptz,
  next_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
create index argo_cd_due on argo_cd (next_at);

-- Clusters that an Argo CD knows, as it last told.
create table argo_cd_destination (
  organization_id uuid not null,
  argo_cd_id uuid not null,
  -- As apps name it: the address of the cluster's API, or its name where only that is known.
  url text not null,
  name text not null,
  applications integer not null,
  primary key (argo_cd_id, url),
  foreign key (organization_id, argo_cd_id) references argo_cd (organization_id, id) on delete cascade
);

-- Which cluster of ours a destination is.
create table argo_cd_mapping (
  organization_id uuid not null,
  argo_cd_id uuid not null,
  url text not null,
  cluster_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (argo_cd_id, url),
  foreign key (organization_id, argo_cd_id) references argo_cd (organization_id, id) on delete cascade,
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
create index argo_cd_mapping_cluster on argo_cd_mapping (cluster_id);

alter table service
  -- The Argo CD that a service was read from: it goes with it.
  add column argo_cd_id uuid,
  -- How a service is that something else runs, as it was last read (deployments/model/observed.ts). Null where deployments run it.
  add column observed jsonb,
  add foreign key (organization_id, argo_cd_id) references argo_cd (organization_id, id) on delete cascade;
create unique index service_argo_cd_app on service (argo_cd_id, (spec ->> 'app_namespace'), (spec ->> 'app_name')) where argo_cd_id is not null;
