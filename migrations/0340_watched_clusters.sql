-- Machine that watches a cluster of no machine, and until when no other one does.
alter table cluster add column watched_by uuid, add column watched_until timestamptz;
