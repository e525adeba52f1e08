-- Since when a machine is known to be lost, so that its loss and its return are each told of once; null while it is there.
alter table node add column lost_at timestamptz;
