-- Copies of the installation that were sent to a store elsewhere. The store itself is what a restore reads: this is what was made and checked.
create table installation_copy (
  name text primary key,
  taken_at timestamptz not null,
  bytes bigint not null,
  stored_at timestamptz not null default now(),
  -- The last restore of it into a scratch database, and why it failed.
  checked_at timestamptz,
  check_error text
);
