-- Audit events that cannot be changed, removed, added or reordered without it being seen (docs/security.md, Audit events): each is signed
-- by the process that writes it and then sealed, in the order of the seals, into a chain of its organization. The key is not in
-- the database.

-- The key of signatures and seals, encrypted by the vault; events from before this moment are in no chain.
alter table installation add column audit_key bytea, add column audited_since timestamptz not null default now();

alter table audit_event add column mac bytea;

-- One row for each event, in the order in which they were sealed. Nothing is changed here; what the retention drops is taken off the front.
create table audit_seal (
  organization_id uuid not null,
  sequence bigint not null,
  event_at timestamptz not null,
  event_id uuid not null,
  -- Of this seal, its event's signature and the hash before it.
  hash bytea not null,
  primary key (organization_id, sequence)
);

-- Both ends of each chain, signed.
create table audit_chain (
  organization_id uuid primary key,
  -- Of the last seal.
  sequence bigint not null,
  hash bytea not null,
  -- Of the last seal that was dropped; 0 and nothing where none was.
  dropped_sequence bigint not null default 0,
  dropped_hash bytea not null default '',
  -- Events of before were dropped by the retention.
  dropped_before timestamptz,
  mac bytea not null
);

-- Events that wait for their seal: written with each, in its transaction, and removed with the seal.
create table audit_unsealed (
  event_at timestamptz not null,
  event_id uuid not null,
  organization_id uuid not null
);

create function audit_event_wait_for_seal() returns trigger language plpgsql as $$
begin
  insert into audit_unsealed values (new.at, new.id, new.organization_id);
  return null;
end $$;
create trigger audit_event_wait_for_seal after insert on audit_event
  for each row execute function audit_event_wait_for_seal();
