-- Kinds of the services of a deployment: a worker of an older release leaves what it does not know to a newer one. Those from before this
-- migration have none, and are everybody's.
alter table deployment add column kinds text[] not null default '{}';
