-- Host names of users that lead to a service's default port.

create table custom_domain (
  id uuid primary key,
  organization_id uuid not null,
  service_id uuid not null,
  -- Lower case, in ASCII form.
  domain text not null,
  generate_certificate boolean not null,
  use_cdn boolean not null default false,
  -- When the name was last seen to lead here; null while that is still awaited.
  validated_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
-- Over the whole installation: one proxy answers for all organizations, and a name can lead to one service only.
create unique index custom_domain_name on custom_domain (domain);
create index custom_domain_service on custom_domain (service_id);
