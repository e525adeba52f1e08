-- The token that a service was changed with last: what its configuration does later by itself goes no further than that token. Null where a
-- session changed it, and for changes from before.
alter table service add column last_updated_with uuid;
