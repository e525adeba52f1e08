-- Registries that images come from, and what services take from them.

create table container_registry (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  kind text not null check (kind in ('ECR', 'SCALEWAY_CR', 'DOCKER_HUB', 'GITHUB_CR', 'GITHUB_ENTERPRISE_CR', 'GITLAB_CR',
    'PUBLIC_ECR', 'DOCR', 'GENERIC_CR', 'GCP_ARTIFACT_REGISTRY', 'AZURE_CR')),
  url text not null,
  -- What of its configuration may be answered.
  config jsonb not null default '{}',
  -- The rest of it as JSON, encrypted; null where there is none.
  secrets bytea,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);

-- A container names its registry itself, a job in its source.
alter table service
  add column container_registry_id uuid generated always as (case kind
    when 'CONTAINER' then (spec ->> 'registry_id')::uuid
    when 'JOB' then (spec -> 'source' -> 'image' ->> 'registry_id')::uuid end) stored,
  add foreign key (organization_id, container_registry_id) references container_registry (organization_id, id);
create index service_container_registry on service (container_registry_id) where container_registry_id is not null;
