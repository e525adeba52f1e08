-- Webhooks of an organization, and every call that was made to them.

create table webhook (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  kind text not null check (kind in ('STANDARD', 'SLACK')),
  target_url text not null,
  -- Encrypted; signs the calls.
  target_secret bytea,
  description text not null default '',
  enabled boolean not null,
  events text[] not null,
  -- Spelling in which each event of `events` was subscribed to, in the same order.
  subscribed_events text[] not null,
  -- Empty ones let everything through.
  project_names_filter text[] not null default '{}',
  environment_types_filter text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);

-- What a webhook is to be told. The id is the one that receivers see, the same in every attempt.
create table webhook_delivery (
  id uuid primary key,
  organization_id uuid not null,
  webhook_id uuid not null,
  kind text not null,
  matched_event text not null,
  -- Exactly what is sent: the signature is over these bytes.
  body text not null,
  state text not null default 'PENDING' check (state in ('PENDING', 'DELIVERED', 'FAILED', 'CANCELED')),
  -- Attempts begun, ever; and those of the present schedule, which begins anew when somebody sends it again.
  attempts integer not null default 0,
  tries integer not null default 0,
  -- When it is due. A claim moves it to the end of the lease, so that what a dead worker held falls due by itself.
  next_attempt_at timestamptz not null default now(),
  -- The claim under way; its worker alone may write the result.
  claim_token uuid,
  created_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, webhook_id) references webhook (organization_id, id) on delete cascade
);
create index webhook_delivery_due on webhook_delivery (next_attempt_at) include (webhook_id) where state = 'PENDING';
create index webhook_delivery_webhook on webhook_delivery (webhook_id, state);
create index webhook_delivery_age on webhook_delivery (created_at) where state <> 'PENDING';

create table webhook_attempt (
  id uuid primary key,
  organization_id uuid not null,
  webhook_id uuid not null,
  delivery_id uuid not null,
  number integer not null,
  kind text not null,
  matched_event text not null,
  target_url text not null,
  started_at timestamptz not null default now(),
  -- Null while it is under way.
  ended_at timestamptz,
  -- 0 where there was no HTTP answer; the body then says why.
  status_code integer,
  response_body text,
  unique (delivery_id, number),
  foreign key (organization_id, webhook_id) references webhook (organization_id, id) on delete cascade,
  foreign key (organization_id, delivery_id) references webhook_delivery (organization_id, id) on delete cascade
);
create index webhook_attempt_list on webhook_attempt (webhook_id, id desc);

create index outbox_topic on outbox (topic, id);
