-- What the runtime of a cluster found when it was checked last: what it is, its limits, and features that do not work, with remedies.
alter table cluster add column capabilities jsonb;
