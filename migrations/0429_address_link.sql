-- One-time links that are mailed to the address that a person wants to have (docs/decisions/0130-people-change-their-address.md). A person has
-- one at most.
create table address_link (
  id uuid primary key,
  user_id uuid not null unique references sign_in on delete cascade,
  email text not null,
  secret_hash bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
