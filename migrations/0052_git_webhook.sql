-- Webhooks that were registered at git providers: one for each repository of an organization, whatever services are built from it.

create table git_webhook (
  -- Part of the URL that the provider calls.
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  -- `host/owner/name`, lower case.
  repository text not null,
  -- Encrypted; the provider signs its calls with it.
  secret bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create unique index git_webhook_repository on git_webhook (organization_id, repository);
