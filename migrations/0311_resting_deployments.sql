-- Deployments whose services all wait for their cluster take none of their organization's slots.
alter table deployment add column resting boolean not null default false;
