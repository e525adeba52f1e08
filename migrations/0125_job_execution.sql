-- What jobs run: executions of their events and times, their logs, and when the next one is due.

create table job_execution (
  id uuid primary key,
  organization_id uuid not null,
  environment_id uuid not null,
  service_id uuid not null,
  event text not null check (event in ('START', 'STOP', 'DELETE', 'CRON')),
  state text not null check (state in ('WAITING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED')),
  -- The deployment whose step it is: its log is there. Null where a schedule began it.
  deployment_id uuid,
  -- When it was due: of a schedule's alone. Each time is run once.
  scheduled_at timestamptz,
  -- What a schedule's runs: the release that the service had when it began.
  release_id uuid,
  -- Whether it may run beside others of its service.
  concurrency text not null default 'Forbid' check (concurrency in ('Allow', 'Forbid', 'Replace')),
  -- How often its command was begun, and how the last of these ended.
  attempts integer not null default 0,
  exit_code integer,
  signal text,
  reason text check (reason in ('exited', 'timeout', 'lost')),
  error text,
  -- Names under which something of it may be left in the runtime.
  tasks text[] not null default '{}',
  -- What of it stays there once it has failed: so many of a service, for so many seconds.
  kept_failures integer not null default 1,
  kept_seconds integer,
  -- Somebody has it cleaned away: it goes once nothing is left of it.
  discarded boolean not null default false,
  cancel_requested_at timestamptz,
  -- The claim of a schedule's: fenced by a token, with a lease by the database's clock.
  claim_token uuid,
  lease_until timestamptz,
  pickups integer not null default 0,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (organization_id, id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade,
  foreign key (organization_id, deployment_id) references deployment (organization_id, id) on delete set null (deployment_id)
);
create index job_execution_service on job_execution (service_id, created_at desc, id);
create unique index job_execution_due on job_execution (service_id, scheduled_at) where scheduled_at is not null;
create unique index job_execution_deployment on job_execution (deployment_id, service_id) where deployment_id is not null;
create index job_execution_active on job_execution (created_at) where state in ('WAITING', 'RUNNING') and scheduled_at is not null;
create index job_execution_left on job_execution (service_id) where tasks <> '{}' or discarded;

create table job_execution_log (
  execution_id uuid not null,
  organization_id uuid not null,
  sequence integer not null,
  -- Compressed JSON lines, at most 64 KB before compression.
  content bytea not null,
  lines integer not null,
  created_at timestamptz not null default now(),
  primary key (execution_id, sequence),
  foreign key (organization_id, execution_id) references job_execution (organization_id, id) on delete cascade
);

-- When services run by themselves next. It follows from their releases, and holds what was missed while nothing looked.
create table cron_schedule (
  service_id uuid primary key,
  organization_id uuid not null,
  -- What the rest was made of.
  release_id uuid not null,
  -- Null where that release has no times.
  expression text,
  time_zone text,
  concurrency text not null,
  kept_failures integer not null,
  kept_seconds integer,
  next_at timestamptz,
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index cron_schedule_due on cron_schedule (next_at) where next_at is not null;
create index service_kind on service (kind);

-- What was built for something that only ran has no release that would bury it.
drop trigger deployment_bury_images on deployment;
create trigger deployment_bury_images after update of status on deployment
  for each row when (new.status = 'ENDED' and old.status <> 'ENDED' and (new.outcome <> 'SUCCESS' or new.action = 'RUN'))
  execute function bury_unreleased_images();
