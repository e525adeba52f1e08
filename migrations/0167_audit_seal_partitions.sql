-- breaking
-- Seals lie in partitions by the month in which they were made, like the events: a month that the retention drops goes at once.

alter table audit_seal rename to audit_seal_2000_01;
alter table audit_seal_2000_01 add column sealed_at timestamptz not null default '2000-01-01';
alter table audit_seal_2000_01 alter column sealed_at set default now();
alter table audit_seal_2000_01 drop constraint audit_seal_pkey;

create table audit_seal (
  organization_id uuid not null,
  sequence bigint not null,
  event_at timestamptz not null,
  event_id uuid not null,
  -- Of this seal, its event's signature and the hash before it.
  hash bytea not null,
  sealed_at timestamptz not null default now(),
  primary key (organization_id, sequence, sealed_at)
) partition by range (sealed_at);
create table audit_seal_default partition of audit_seal default;
-- All seals from before this migration: they are taken for ones of January 2000, so that no row is written anew.
alter table audit_seal attach partition audit_seal_2000_01 for values from ('2000-01-01') to ('2000-02-01');
