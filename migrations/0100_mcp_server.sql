-- Servers of the Model Context Protocol that agents of an organization may use.

create table mcp_server (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text not null,
  url text not null,
  -- Encrypted: what is sent with every request, as a JSON object; null where nothing is.
  headers bytea,
  -- Names of those headers: they are shown, the values are not.
  header_names text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  check ((headers is null) = (cardinality(header_names) = 0))
);
create unique index mcp_server_name on mcp_server (organization_id, lower(name));
