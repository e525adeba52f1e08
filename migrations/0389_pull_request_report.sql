-- What providers show of previews: one comment on the pull request, and statuses at its head.

create table pull_request_report (
  id uuid primary key,
  organization_id uuid not null,
  pull_request_id uuid not null unique,
  -- Comment at the provider; null for none yet.
  comment_id text,
  -- People have deleted the comment: it is not written again.
  comment_is_gone boolean not null default false,
  -- SHA-256 of the comment that the provider was told last.
  told_comment text,
  -- By preview: SHA-256 of the status that the provider was told last, and the commit that the preview was last seen running.
  told_statuses jsonb not null default '{}',
  told_at timestamptz not null default now(),
  -- Times that the report was wanted: one that is wanted while it is under way is looked at again.
  requests integer not null default 1,
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
  foreign key (organization_id, pull_request_id) references pull_request (organization_id, id) on delete cascade
);
create index pull_request_report_due on pull_request_report (due_at) where status <> 'ENDED';
