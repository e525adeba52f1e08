-- Receivers that fail one call after the other are asked seldom: their backlog keeps no other receiver waiting.

alter table webhook
  -- Calls that failed since the last one that succeeded.
  add column failures integer not null default 0,
  -- Until then it is not called.
  add column paused_until timestamptz;
create index webhook_paused on webhook (paused_until) where paused_until is not null;
