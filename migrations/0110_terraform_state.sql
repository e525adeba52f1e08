-- States of Terraform services that we keep ourselves: what Terraform's http backend reads, writes and locks.

create table terraform_state (
  service_id uuid primary key,
  organization_id uuid not null,
  -- Number of the newest version, 0 while there is none.
  version bigint not null default 0,
  -- The newest run that may read and write. It grows with each deployment: whoever began earlier is refused.
  generation bigint not null default 0,
  -- SHA-256 of that run's password; null when no run is under way, and then nobody is let in.
  run_secret_hash bytea,
  -- The password itself, encrypted, for a worker that takes the run over.
  run_secret bytea,
  run_until timestamptz,
  -- What Terraform said of itself when it locked, and which run that was.
  lock jsonb,
  lock_id text,
  lock_generation bigint,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, service_id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade,
  check ((lock is null) = (lock_id is null) and (lock is null) = (lock_generation is null)),
  check ((run_secret_hash is null) = (run_secret is null) and (run_secret is null) = (run_until is null))
);

create table terraform_state_version (
  service_id uuid not null,
  organization_id uuid not null,
  version bigint not null,
  -- Compressed and encrypted; null where the state was deleted.
  content bytea,
  -- Bytes as Terraform sent them.
  size integer not null,
  -- Run that wrote it.
  generation bigint not null,
  created_at timestamptz not null default now(),
  primary key (service_id, version),
  foreign key (organization_id, service_id) references terraform_state (organization_id, service_id) on delete cascade
);
