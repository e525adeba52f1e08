-- Reports of what a deployment built, readable by whoever has the link until it expires.

create table build_report (
  id uuid primary key,
  organization_id uuid not null,
  deployment_id uuid not null,
  -- SHA-256 of the secret in the links.
  secret_hash bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  foreign key (organization_id, deployment_id) references deployment (organization_id, id) on delete cascade
);
create index build_report_expiry on build_report (expires_at);
