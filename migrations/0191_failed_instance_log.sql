-- The last lines of the newest instance of a service that did not get ready: it is removed, and its log with it.
create table failed_instance_log (
  service_id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  deployment_id uuid not null,
  -- [{at, instance, generation, stream, text}], the oldest first, secrets masked.
  lines jsonb not null,
  created_at timestamptz not null default now(),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
