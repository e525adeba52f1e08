-- Pull requests, as their providers' webhooks tell of them, and the environments that show them (previews).

create table pull_request_call (
  id uuid primary key,
  -- Order of arrival.
  number bigint generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  -- `host/owner/name`, lower case, as in git_webhook.
  repository text not null,
  delivery_id text not null,
  -- SHA-256 of the body: ids of calls are not signed, and an old body must not come again under another one.
  body_digest text not null,
  sender text not null,
  is_comment boolean not null,
  -- Body of the call until it is read.
  body text,
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  -- Why it changed nothing.
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (organization_id, repository, delivery_id),
  unique (organization_id, repository, body_digest)
);
create index pull_request_call_open on pull_request_call (organization_id, repository, number) where status <> 'ENDED';
create index pull_request_call_ended_at on pull_request_call (ended_at) where status = 'ENDED';

create table pull_request (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  repository text not null,
  -- Number at the provider.
  number bigint not null,
  state text not null check (state in ('OPEN', 'CLOSED')),
  -- True if the head is in another repository.
  is_fork boolean not null,
  -- Label `preview`, and comment `/preview`.
  is_labelled boolean not null default false,
  is_asked boolean not null default false,
  head_branch text not null,
  head_commit text not null,
  base_branch text not null,
  base_is_default boolean not null,
  -- Head of the base; null if the provider does not say it.
  base_commit text,
  -- Provider's time of the last change that is known: calls about an earlier one came late.
  changed_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  unique (organization_id, repository, number)
);

create table preview (
  id uuid primary key,
  organization_id uuid not null,
  pull_request_id uuid not null,
  -- Environment that is cloned; null once it is gone.
  source_id uuid,
  -- Clone; null if it is not there.
  environment_id uuid,
  wanted text not null check (wanted in ('PRESENT', 'ABSENT')),
  -- Head that was deployed last; null if the next look deploys in any case.
  applied_commit text,
  -- Commit that each service was last asked to run, by id.
  awaited jsonb not null default '{}',
  -- Head at the end of the last look: what the outcome is about.
  looked_commit text,
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  outcome text check (outcome in ('PREVIEWED', 'AWAITS_APPROVAL', 'NOT_AFFECTED', 'REFUSED', 'REMOVED')),
  -- Why it was refused.
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (pull_request_id, source_id),
  foreign key (organization_id, pull_request_id) references pull_request (organization_id, id) on delete cascade,
  foreign key (organization_id, source_id) references environment (organization_id, id) on delete set null (source_id),
  foreign key (organization_id, environment_id) references environment (organization_id, id) on delete set null (environment_id)
);
create index preview_due on preview (due_at) where status <> 'ENDED';
create index preview_source on preview (source_id);
create unique index preview_environment on preview (environment_id);
create index preview_organization on preview (organization_id) where environment_id is not null;

create index service_auto_preview on service (organization_id) where spec ->> 'auto_preview' = 'true';
