-- Name and address for invoices that an organization has stored. Nothing is invoiced from here: people and their own accounting read it.

create table billing_info (
  organization_id uuid primary key references organization on delete cascade,
  -- Fields by their names in answers.
  fields jsonb not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
