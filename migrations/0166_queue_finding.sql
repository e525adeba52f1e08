-- What the watchdog of the queue has found: deployments and work on clusters that wait for each other, or that nothing holds and nobody claims.

create table queue_finding (
  -- Kind and the row that is held up: the same finding keeps its time.
  id text primary key,
  kind text not null check (kind in ('CYCLE', 'UNCLAIMED')),
  message text not null,
  first_seen_at timestamptz not null default now(),
  -- Since when it counts: an unclaimed row is normal for a minute.
  reported_at timestamptz
);
