-- Operators ask for the last failure of each kind of work (src/app/work-reports.ts) whenever metrics are read.
create index webhook_delivery_failed on webhook_delivery (next_attempt_at) where state = 'FAILED';
create index job_execution_failed on job_execution (ended_at) where state = 'FAILED';
create index database_backup_failed on database_backup (ended_at) where status = 'FAILED';
