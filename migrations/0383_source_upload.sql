-- Folders that were uploaded as the source of a service: each is one commit, packed by git (docs/decisions/0100).

create table source_upload (
  id uuid primary key,
  organization_id uuid not null,
  service_id uuid not null,
  commit_id text not null check (commit_id ~ '^[0-9a-f]{40}$'),
  -- Tree of the commit: the same content of the same service is the same commit.
  tree_id text not null check (tree_id ~ '^[0-9a-f]{40}$'),
  author text not null,
  message text not null,
  committed_at timestamptz not null,
  files integer not null,
  unpacked_bytes bigint not null,
  packed_bytes bigint not null,
  created_at timestamptz not null default now(),
  -- When the last part was stored; what has none was interrupted.
  stored_at timestamptz,
  -- When it was last asked for: what no deployment names is kept for a while after that.
  requested_at timestamptz not null default now(),
  unique (organization_id, id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index source_upload_commit on source_upload (service_id, commit_id);
create unique index source_upload_tree on source_upload (service_id, tree_id) where stored_at is not null;

create table source_upload_part (
  organization_id uuid not null,
  upload_id uuid not null,
  number integer not null,
  content bytea not null,
  primary key (upload_id, number),
  foreign key (organization_id, upload_id) references source_upload (organization_id, id) on delete cascade
);
-- Packs are compressed already.
alter table source_upload_part alter column content set storage external;
