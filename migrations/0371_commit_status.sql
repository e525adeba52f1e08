-- Statuses of commits that git providers show: pending with the request of a deployment, then how it ended.

create table commit_status (
  id uuid primary key,
  organization_id uuid not null,
  deployment_id uuid not null,
  service_id uuid not null,
  git_token_id uuid not null references git_token on delete cascade,
  -- Repository at its provider.
  host text not null,
  owner text not null,
  name text not null,
  commit text not null,
  -- State that the provider has; null for none yet.
  reported text check (reported in ('pending', 'success', 'failure', 'cancelled')),
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  -- Why the provider does not show it.
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (deployment_id, service_id, host, owner, name, commit),
  foreign key (organization_id, deployment_id) references deployment (organization_id, id) on delete cascade
);
create index commit_status_open on commit_status (due_at) where status <> 'ENDED';
create index commit_status_token on commit_status (git_token_id);
