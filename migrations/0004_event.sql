-- What happened: audit events, and the outbox that feeds webhooks.

create table audit_event (
  id uuid not null,
  organization_id uuid not null,
  at timestamptz not null default now(),
  event_type text not null,
  target_type text not null,
  target_id uuid,
  target_name text not null,
  sub_target_type text,
  project_id uuid,
  project_name text,
  environment_id uuid,
  environment_name text,
  triggered_by text not null,
  triggered_by_id uuid,
  origin text not null,
  user_agent text,
  -- State after the change, without secrets, and before it.
  change jsonb,
  original_change jsonb,
  request_id text,
  primary key (at, id)
) partition by range (at);
create table audit_event_default partition of audit_event default;
create index audit_event_feed on audit_event (organization_id, at desc, id desc);
create index audit_event_target on audit_event (organization_id, target_type, target_id);

create table outbox (
  id bigint generated always as identity primary key,
  organization_id uuid not null references organization on delete cascade,
  topic text not null,
  payload jsonb not null,
  created_at timestamptz not null default now()
);
