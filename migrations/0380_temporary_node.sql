-- Machines whose data directory ends with their process: no cluster can live there.

alter table node add column is_temporary boolean not null default false;
