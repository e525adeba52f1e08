-- Disk that organizations take on machines, as it was measured last, and what is to be known of a service that takes too much of it.
create table disk_use (
  node_id uuid not null references node(id) on delete cascade,
  organization_id uuid not null references organization(id) on delete cascade,
  kind text not null check (kind in ('image', 'volume', 'instance', 'task', 'log', 'checkout')),
  bytes bigint not null,
  -- False where a tree was too large to be walked in time: at least so much is taken.
  is_whole boolean not null,
  measured_at timestamptz not null default now(),
  primary key (node_id, organization_id, kind)
);
create index disk_use_organization on disk_use (organization_id);

create table service_warning (
  organization_id uuid not null references organization(id) on delete cascade,
  service_id uuid not null,
  code text not null,
  -- Id of the volume, or name of the instance.
  subject text not null,
  message text not null,
  created_at timestamptz not null default now(),
  primary key (service_id, code, subject),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
