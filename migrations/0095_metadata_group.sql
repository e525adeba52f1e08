-- Groups of labels and of annotations of an organization, which services and clusters name and what runtimes make of them carries.

create table metadata_group (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  kind text not null check (kind in ('LABELS', 'ANNOTATIONS')),
  name text not null,
  -- [{key, value, propagate_to_cloud_provider?}], in the order in which they were given.
  entries jsonb not null,
  -- Kinds of objects that carry annotations; labels have none.
  scopes text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create index metadata_group_organization on metadata_group (organization_id, kind, created_at, id);

-- Which services name a group: their specs hold the ids in lists, which no foreign key can refer to.
create index service_metadata_group on service using gin (
  (coalesce(spec -> 'labels_groups', '[]'::jsonb) || coalesce(spec -> 'annotations_groups', '[]'::jsonb))
);
