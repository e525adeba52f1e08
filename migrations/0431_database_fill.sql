-- Content of the databases of previews (docs/decisions/0132-databases-of-previews-are-filled-by-their-first-deployment.md).
alter table environment_deployment_rule add column preview_databases text not null default 'EMPTY'
  check (preview_databases in ('EMPTY', 'LAST_BACKUP', 'COPY'));

alter table database_backup drop constraint database_backup_origin_check;
alter table database_backup add constraint database_backup_origin_check
  check (origin in ('MANUAL', 'DAILY', 'BEFORE_DELETE', 'BEFORE_RESTORE', 'FOR_COPY'));

-- Databases whose first deployment loads the content of another one.
create table database_fill (
  database_id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  source_id uuid not null,
  source_name text not null,
  -- Backup that is made for it; null for the last one that there is.
  backup_id uuid,
  created_at timestamptz not null default now(),
  -- Set once the server has the whole dump, which it loads when it is restarted.
  loaded_at timestamptz,
  ended_at timestamptz,
  foreign key (organization_id, database_id) references service (organization_id, id) on delete cascade
);
