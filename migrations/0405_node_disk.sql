-- Disks that the files of a machine lie on, as the machine itself measured them last.
create table node_disk (
  node_id uuid not null references node(id) on delete cascade,
  -- What lies on the disk: the data directory, or the storage of a container engine outside of it.
  holds text not null check (holds in ('DATA', 'ENGINE')),
  total_bytes bigint not null,
  free_bytes bigint not null,
  measured_at timestamptz not null default now(),
  primary key (node_id, holds)
);
