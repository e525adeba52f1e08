-- Tags of images that services with auto_deploy run, which are looked at again and again.

create table image_tag (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  registry_id uuid not null,
  image_name text not null,
  tag text not null,
  -- Image, by its digest, that the services had their deployments requested for last; null before the first look.
  image text,
  -- Services that have not been given that image: their cluster is locked, or they may not be deployed.
  put_off uuid[] not null default '{}',
  looked_at timestamptz,
  failures integer not null default 0,
  -- Why the last look failed, or services were not deployed.
  error text,
  next_at timestamptz not null default now(),
  claim_token uuid,
  lease_until timestamptz,
  created_at timestamptz not null default now(),
  unique (organization_id, registry_id, image_name, tag),
  foreign key (organization_id, registry_id) references container_registry (organization_id, id) on delete cascade
);
create index image_tag_due on image_tag (next_at);
