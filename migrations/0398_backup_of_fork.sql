-- Backups of databases beside the code of a fork: their content is that of strangers, and the mark of an environment ends with it.

alter table database_backup
  -- True if the environment of the database ran the code of a fork when the backup was made.
  add column of_fork boolean not null default false;

update database_backup set of_fork = true
from environment
where environment.id = database_backup.environment_id
  and environment.organization_id = database_backup.organization_id
  and environment.fork_ref is not null;
