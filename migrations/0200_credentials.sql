-- Accounts of cloud providers, which clusters name. Stored only: nothing here calls a provider.

create table credentials (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  cloud_provider text not null check (cloud_provider in ('AWS', 'SCW', 'GCP', 'AZURE', 'ON_PREMISE')),
  name text not null,
  -- Shape of the account, such as AWS_ROLE: decides which fields and secrets there are.
  object_type text not null,
  -- Fields that are answered, by their names in answers.
  fields jsonb not null default '{}',
  -- Encrypted JSON object of the fields that are never answered; null where the shape has none.
  secrets bytea,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create index credentials_organization on credentials (organization_id, created_at, id);

alter table cluster
  add constraint cluster_credentials_fkey foreign key (organization_id, credentials_id) references credentials (organization_id, id);
