-- A backup that is gone, by itself or with its organization, may have left its file on a machine: that removes it then. Nothing refers to
-- what is gone (decisions/0014).
create table database_backup_file (
  backup_id uuid primary key,
  organization_id uuid not null,
  node_id uuid not null,
  -- Whoever was making it has stopped by then.
  due_at timestamptz not null
);
create index database_backup_file_node on database_backup_file (node_id, due_at);

create function bury_backups() returns trigger language plpgsql as $$
begin
  insert into database_backup_file (backup_id, organization_id, node_id, due_at)
  select gone.id, gone.organization_id, gone.node_id, greatest(now(), gone.lease_until) from gone where gone.node_id is not null
  on conflict do nothing;
  return null;
end $$;
create trigger database_backup_bury after delete on database_backup
  referencing old table as gone for each statement execute function bury_backups();

-- What was to be deleted is deleted at once from now on.
delete from database_backup where status = 'DELETING';
alter table database_backup drop constraint database_backup_status_check;
alter table database_backup add constraint database_backup_status_check check (status in ('QUEUED', 'RUNNING', 'READY', 'FAILED'));
drop index database_backup_open;
create index database_backup_open on database_backup (created_at) where status in ('QUEUED', 'RUNNING');
