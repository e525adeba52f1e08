-- A standby of PostgreSQL that takes the place of its primary may lack what was committed last, and gives out the numbers of those
-- transactions and rows once more. It begins a timeline of its own.

create function current_timeline() returns text language plpgsql stable as $$
begin
  return substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8);
exception when others then
  -- Standbys, and servers that hide their log, tell none.
  return null;
end $$;

alter table installation add column timeline text;
update installation set timeline = current_timeline();
alter table installation alter column timeline set default current_timeline();

-- Epoch of the installation when a deployment or a run of a job was begun: what it makes outside the database is named by it.
alter table deployment add column epoch integer;
update deployment set epoch = (select epoch from installation) where status in ('RUNNING', 'RECAP');
alter table job_execution add column epoch integer;
update job_execution set epoch = (select epoch from installation) where state = 'RUNNING' and scheduled_at is not null;
