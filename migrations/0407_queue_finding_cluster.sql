-- Cluster whose queue is held up; null until the watchdog has looked again.
alter table queue_finding add column cluster_id uuid;
