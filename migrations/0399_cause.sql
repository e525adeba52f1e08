-- Cause of a service's failure, if it is known: code, summary, fix, lines.
alter table deployment_service add column error_cause jsonb;
