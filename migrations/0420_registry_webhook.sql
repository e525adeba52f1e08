-- Addresses that container registries call when an image was pushed, one for each registry, and calls that wait for a look at a tag.

create table registry_webhook (
  -- Part of the URL that the registry calls.
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  registry_id uuid not null,
  -- Encrypted; the registry sends it, or signs its calls with it.
  secret bytea not null,
  -- Last call that knew the secret, to the minute.
  called_at timestamptz,
  created_at timestamptz not null default now(),
  unique (organization_id, registry_id),
  foreign key (organization_id, registry_id) references container_registry (organization_id, id) on delete cascade
);

-- Names the last call that no look has answered yet; null for none. A call that comes during a look has another id than the look began with.
alter table image_tag add column call_id uuid;
