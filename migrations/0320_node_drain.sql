-- Since when a machine begins nothing new, by the order of an operator; null while it takes work.
alter table node add column drained_at timestamptz;
