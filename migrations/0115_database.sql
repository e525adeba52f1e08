-- Databases of users: which applications are linked with them, their backups and what is restored of these.

-- A link keeps an alias of the database's URL on the application.
create table database_link (
  organization_id uuid not null,
  database_id uuid not null,
  application_id uuid not null,
  -- The alias; null once somebody deleted it.
  variable_id uuid,
  created_at timestamptz not null default now(),
  primary key (database_id, application_id),
  foreign key (organization_id, database_id) references service (organization_id, id) on delete cascade,
  foreign key (organization_id, application_id) references service (organization_id, id) on delete cascade,
  foreign key (variable_id) references variable (id) on delete set null
);
create index database_link_application on database_link (application_id);
create index database_link_variable on database_link (variable_id);

-- A backup outlives its database: no foreign key to it, and its names are kept.
create table database_backup (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  database_id uuid not null,
  database_name text not null,
  project_id uuid not null,
  project_name text not null,
  environment_id uuid not null,
  environment_name text not null,
  environment_mode text not null,
  name text not null,
  message text not null,
  origin text not null check (origin in ('MANUAL', 'DAILY', 'BEFORE_DELETE', 'BEFORE_RESTORE')),
  -- Whose part it is: it is made within that deployment.
  deployment_id uuid,
  status text not null default 'QUEUED' check (status in ('QUEUED', 'RUNNING', 'READY', 'FAILED', 'DELETING')),
  error text,
  type text not null,
  version text not null,
  -- What wrote it: only the same reads it.
  format text not null,
  extension text not null,
  leaves_out text not null,
  -- Machine that the file lies on.
  node_id uuid,
  -- Encrypted: the key of the file.
  key bytea not null,
  -- Of the dump, and of the file.
  bytes bigint,
  stored_bytes bigint,
  requested_by uuid,
  requested_by_name text not null,
  claim_token uuid,
  lease_until timestamptz,
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  -- When it is deleted by itself; null for never.
  expires_at timestamptz,
  unique (organization_id, id)
);
create index database_backup_database on database_backup (database_id, created_at desc);
create index database_backup_open on database_backup (created_at) where status in ('QUEUED', 'RUNNING', 'DELETING');
create index database_backup_expiry on database_backup (expires_at) where expires_at is not null;
create unique index database_backup_deployment on database_backup (deployment_id, database_id) where deployment_id is not null;

-- A restore into a database: planned first, with what it replaces.
create table database_restore (
  id uuid primary key,
  organization_id uuid not null,
  database_id uuid not null,
  backup_id uuid not null,
  status text not null default 'PLANNED' check (status in ('PLANNED', 'QUEUED', 'RUNNING', 'READY', 'FAILED')),
  replaces jsonb not null,
  -- What there was before it began, where that could be saved.
  safety_backup_id uuid references database_backup on delete set null,
  error text,
  requested_by uuid,
  requested_by_name text not null,
  claim_token uuid,
  lease_until timestamptz,
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (organization_id, id),
  foreign key (organization_id, database_id) references service (organization_id, id) on delete cascade,
  foreign key (organization_id, backup_id) references database_backup (organization_id, id) on delete cascade
);
create index database_restore_database on database_restore (database_id, created_at desc);
create index database_restore_backup on database_restore (backup_id);
create index database_restore_open on database_restore (created_at) where status in ('QUEUED', 'RUNNING');
