-- Which changes of a repository deploy a service by themselves.

create table deployment_restriction (
  id uuid primary key,
  organization_id uuid not null,
  service_id uuid not null,
  mode text not null check (mode in ('EXCLUDE', 'MATCH')),
  type text not null check (type in ('PATH')),
  value text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create unique index deployment_restriction_value on deployment_restriction (service_id, mode, type, value);
