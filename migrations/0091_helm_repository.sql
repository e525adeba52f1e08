-- Repositories that Helm charts come from, and what services take from them.

create table helm_repository (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  kind text not null check (kind in ('HTTPS', 'OCI_ECR', 'OCI_SCALEWAY_CR', 'OCI_DOCKER_HUB', 'OCI_PUBLIC_ECR',
    'OCI_GENERIC_CR', 'OCI_GITHUB_CR', 'OCI_GITLAB_CR')),
  url text not null,
  skip_tls_verification boolean not null default false,
  -- What of its configuration may be answered.
  config jsonb not null default '{}',
  -- The rest of it as JSON, encrypted; null where there is none.
  secrets bytea,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);

alter table service
  add column helm_repository_id uuid generated always as (case kind
    when 'HELM' then (spec -> 'source' -> 'repository' ->> 'helm_repository_id')::uuid end) stored,
  add foreign key (organization_id, helm_repository_id) references helm_repository (organization_id, id);
create index service_helm_repository on service (helm_repository_id) where helm_repository_id is not null;
