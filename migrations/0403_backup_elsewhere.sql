-- Files of backups in the store elsewhere. Sending is written down before it begins, so that an object never outlives its backup.
alter table database_backup add column sending_at timestamptz;
alter table database_backup add column stored_at timestamptz;
create index database_backup_unstored on database_backup (node_id, created_at) where status = 'READY' and stored_at is null;

-- Whether the store may have the file, too.
alter table database_backup_file add column stored boolean not null default false;

create or replace function bury_backups() returns trigger language plpgsql as $$
begin
  insert into database_backup_file (backup_id, organization_id, node_id, due_at, stored)
  select gone.id, gone.organization_id, gone.node_id, greatest(now(), gone.lease_until), gone.sending_at is not null
    from gone where gone.node_id is not null
  on conflict do nothing;
  return null;
end $$;
