-- Logs of pods that have ended, whose cluster deletes them (docs/decisions/0131-logs-of-ended-pods-are-kept-in-the-database.md).
create table pod_log (
  organization_id uuid not null references organization on delete cascade,
  service_id uuid not null,
  -- Identity that the cluster gave the pod.
  pod_uid text not null,
  pod_name text not null,
  ended_at timestamptz not null,
  -- Compressed lines (src/runtimes/tools/packed-log.ts).
  content bytea not null,
  primary key (service_id, pod_uid),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index pod_log_end on pod_log (ended_at);
-- It is compressed already.
alter table pod_log alter column content set storage external;
