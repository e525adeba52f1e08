-- What the stream of events is read from: one small row for each change that people watch, written by triggers in the
-- transaction of the change, so that none can be forgotten (docs/decisions/0010-the-stream-is-read-by-transaction.md).

create table stream_event (
  -- The writing transaction: readers go by it and by the id, and take only what is below the oldest one under way.
  xid xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity,
  -- No foreign keys: what a row tells of may be gone when it is read, and locking the organization would hold up writers.
  organization_id uuid not null,
  at timestamptz not null,
  type text not null check (type in ('deployment', 'service-state', 'step', 'audit', 'log')),
  project_id uuid,
  environment_id uuid,
  -- Of an audit event its target.
  service_id uuid,
  deployment_id uuid,
  -- Audit events are read from their own table, by `at` and this.
  audit_id uuid,
  data jsonb,
  primary key (xid, id)
);
create index stream_event_organization on stream_event (organization_id, xid, id);

-- One row: which line of transactions the events are of, and up to where they were removed.
create table stream_state (
  singleton boolean primary key default true check (singleton),
  -- Another one after a restore: cursors of the line before it mean nothing here.
  line text not null default substr(md5(gen_random_uuid()::text), 1, 12),
  epoch integer not null default 1,
  removed_xid xid8 not null default '0',
  removed_id bigint not null default 0
);
insert into stream_state default values;

create function stream_deployment() returns trigger language plpgsql as $$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, deployment_id, data) values (
    new.organization_id, clock_timestamp(), 'deployment',
    (select project_id from environment where id = new.environment_id), new.environment_id, new.id,
    jsonb_build_object('number', new.number, 'action', new.action, 'trigger', new.trigger, 'status', new.status,
      'outcome', new.outcome, 'canceling', new.cancel_requested_at is not null));
  return null;
end $$;
create trigger stream_deployment_insert after insert on deployment
  for each row execute function stream_deployment();
-- Renewed leases, claims and counters are no events: the condition is asked without calling the function.
create trigger stream_deployment_update after update on deployment
  for each row when (old.status <> new.status or (old.cancel_requested_at is null) <> (new.cancel_requested_at is null))
  execute function stream_deployment();

create function stream_service_state() returns trigger language plpgsql as $$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, deployment_id, data) values (
    new.organization_id, clock_timestamp(), 'service-state',
    (select project_id from environment where id = new.environment_id), new.environment_id, new.service_id, new.deployment_id,
    jsonb_build_object('number', new.number, 'kind', new.kind, 'name', new.name, 'action', new.action,
      'sub_action', new.sub_action, 'state', new.state));
  return null;
end $$;
create trigger stream_service_state_insert after insert on deployment_service
  for each row execute function stream_service_state();
create trigger stream_service_state_update after update on deployment_service
  for each row when (old.state <> new.state) execute function stream_service_state();

create function stream_step() returns trigger language plpgsql as $$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, deployment_id, data)
  select new.organization_id, clock_timestamp(), 'step',
    (select project_id from environment where id = service.environment_id), service.environment_id, new.service_id, new.deployment_id,
    jsonb_build_object('number', service.number, 'kind', service.kind, 'service', service.name, 'position', new.position,
      'name', new.name, 'status', new.status, 'started_at', new.started_at, 'ended_at', new.ended_at)
  from deployment_service service where service.deployment_id = new.deployment_id and service.service_id = new.service_id;
  return null;
end $$;
create trigger stream_step_insert after insert on deployment_step
  for each row execute function stream_step();
create trigger stream_step_update after update on deployment_step
  for each row when (old.status <> new.status) execute function stream_step();

-- Only where the text is: it is read when somebody follows it.
create function stream_log() returns trigger language plpgsql as $$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, deployment_id, data)
  select new.organization_id, clock_timestamp(), 'log',
    (select project_id from environment where id = deployment.environment_id), deployment.environment_id, new.deployment_id,
    jsonb_build_object('number', deployment.number, 'sequence', new.sequence)
  from deployment where deployment.id = new.deployment_id;
  return null;
end $$;
create trigger stream_log after insert on deployment_log
  for each row execute function stream_log();

create function stream_audit() returns trigger language plpgsql as $$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, audit_id)
  values (new.organization_id, new.at, 'audit', new.project_id, new.environment_id, new.target_id, new.id);
  return null;
end $$;
create trigger stream_audit after insert on audit_event
  for each row execute function stream_audit();
