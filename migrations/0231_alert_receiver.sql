-- Where messages of alerts go. The URL of a Slack webhook is itself a credential.

create table alert_receiver (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text not null,
  type text not null check (type in ('SLACK')),
  send_resolved boolean not null,
  owner text,
  severity text,
  -- Encrypted.
  webhook_url bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index alert_receiver_organization on alert_receiver (organization_id, created_at, id);
