-- Pushes to repositories, as their providers' webhooks or polls tell of them, and the branches that services follow (`auto_deploy`).

create table git_push (
  id uuid primary key,
  -- Order of arrival.
  number bigint generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  -- `host/owner/name`, lower case, as in git_webhook.
  repository text not null,
  -- Id of the provider's call, or of the poll: one that comes again is refused.
  delivery_id text not null,
  -- SHA-256 of the body: ids of calls are not signed, and an old body must not come again under another one.
  body_digest text,
  -- Provider's name of the event; null for what a poll found.
  event text,
  -- Body of the call until it is read.
  body text,
  -- Branch and commits: of a poll from the beginning, of a call once it is read.
  branch text,
  before_commit text,
  after_commit text,
  -- Environments that the push is applied to; null for all.
  environment_ids uuid[],
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  -- What became of it for each service that follows the branch.
  outcome jsonb,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (organization_id, repository, delivery_id),
  unique (organization_id, repository, body_digest)
);
create index git_push_open on git_push (organization_id, repository, number) where status <> 'ENDED';
create index git_push_ended on git_push (organization_id, repository, number desc) where status = 'ENDED';
create index git_push_ended_at on git_push (ended_at) where status = 'ENDED';

create table git_branch (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  repository text not null,
  branch text not null,
  -- Newest commit that was applied to services.
  head text,
  -- Commit that the last poll found.
  polled text,
  -- Failed polls in a row, and why the last one failed.
  failures integer not null default 0,
  error text,
  polled_at timestamptz,
  next_at timestamptz not null default now(),
  claim_token uuid,
  lease_until timestamptz,
  created_at timestamptz not null default now(),
  unique (organization_id, repository, branch)
);
create index git_branch_due on git_branch (next_at);

alter table git_webhook
  -- When the provider last called with the right signature.
  add column heard_at timestamptz,
  -- Token by which it was registered last, which removes it again.
  add column git_token_id uuid references git_token on delete set null,
  -- Since when no service is built from the repository.
  add column unused_since timestamptz;
create index git_webhook_token on git_webhook (git_token_id);

create index service_auto_deploy on service (organization_id)
  where coalesce(spec ->> 'auto_deploy', spec -> 'auto_deploy_config' ->> 'auto_deploy') = 'true';
