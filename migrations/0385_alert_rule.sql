-- Alert rules, what they found, and the messages that tell of it.

alter table alert_receiver
  add constraint alert_receiver_organization_id_id_key unique (organization_id, id),
  -- Why the last message did not arrive; null once one has.
  add column delivery_error text,
  -- Failed calls one after the other, and until when the receiver is left alone.
  add column failures integer not null default 0,
  add column paused_until timestamptz;
create index alert_receiver_paused on alert_receiver (paused_until) where paused_until is not null;

create table alert_rule (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  cluster_id uuid not null,
  target_type text not null,
  target_id uuid not null,
  -- Project of the target, by which rights are decided once the target is deleted; null for a cluster.
  target_project_id uuid,
  name text not null,
  description text not null,
  tag text not null,
  condition jsonb not null,
  for_duration text not null,
  for_seconds integer not null,
  severity text not null check (severity in ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL')),
  presentation jsonb not null,
  enabled boolean not null,
  -- Person and token that saved the rule last: it is evaluated with their rights.
  set_by uuid references user_account (id),
  set_with uuid,
  -- When the rule was last evaluated as it is now, and why it is not evaluated.
  evaluated_at timestamptz,
  problem text,
  -- Time of the next evaluation; infinity while the rule is disabled.
  next_at timestamptz not null default now(),
  claim_token uuid,
  lease_until timestamptz,
  -- Evaluations that failed one after the other, and the time of the last one.
  failures integer not null default 0,
  failed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create index alert_rule_organization on alert_rule (organization_id, created_at, id);
create index alert_rule_due on alert_rule (next_at);

create table alert_rule_receiver (
  organization_id uuid not null,
  rule_id uuid not null,
  receiver_id uuid not null,
  -- True once the receiver has been told of all alerts that fire: only then it is told of their end.
  is_current boolean not null default false,
  -- Why the last message of the rule did not arrive there; null once one has.
  error text,
  primary key (rule_id, receiver_id),
  foreign key (organization_id, rule_id) references alert_rule (organization_id, id) on delete cascade,
  foreign key (organization_id, receiver_id) references alert_receiver (organization_id, id) on delete cascade
);
create index alert_rule_receiver_receiver on alert_rule_receiver (organization_id, receiver_id);

-- Things that fulfil the condition of a rule now.
create table alert_incident (
  organization_id uuid not null,
  rule_id uuid not null,
  subject_id uuid not null,
  name text not null,
  detail text not null,
  -- Part of the service that fulfils the condition, such as one of its domains; null where that is the service itself.
  part text,
  -- Start of the condition, such as the end of the deployment that failed.
  since timestamptz not null,
  -- Null until the condition has held for the duration of the rule.
  fired_at timestamptz,
  primary key (rule_id, subject_id),
  foreign key (organization_id, rule_id) references alert_rule (organization_id, id) on delete cascade
);

create table alert_message (
  id uuid primary key,
  -- Order in which a receiver gets the messages of a rule.
  number bigint generated always as identity,
  organization_id uuid not null,
  rule_id uuid not null,
  receiver_id uuid not null,
  content jsonb not null,
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  error text,
  attempts integer not null default 0,
  -- Calls that have failed.
  tries integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  foreign key (organization_id, rule_id) references alert_rule (organization_id, id) on delete cascade,
  foreign key (organization_id, receiver_id) references alert_receiver (organization_id, id) on delete cascade
);
create index alert_message_open on alert_message (due_at) where status <> 'ENDED';
create index alert_message_next on alert_message (rule_id, receiver_id, number) where status <> 'ENDED';
create index alert_message_rule on alert_message (organization_id, rule_id);
create index alert_message_receiver on alert_message (organization_id, receiver_id);
create index alert_message_ended on alert_message (ended_at) where status = 'ENDED';
create index alert_message_failed on alert_message (ended_at) where error is not null;
