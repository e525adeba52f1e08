-- Work that recurs, done by one process at a time over all replicas.
create table scheduled_task (
  name text primary key,
  next_at timestamptz not null default now(),
  -- While a process does it; afterwards another may take it over.
  locked_until timestamptz,
  last_error text,
  last_ended_at timestamptz
);
