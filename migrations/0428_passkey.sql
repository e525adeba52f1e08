-- Passkeys beside passwords (docs/decisions/0127-people-sign-in-with-a-passkey.md).

-- A person who signs in with passkeys alone has no password.
alter table sign_in
  alter column password_hash drop not null,
  alter column password_salt drop not null,
  alter column memory_kib drop not null,
  alter column passes drop not null,
  add constraint sign_in_password check (num_nulls(password_hash, password_salt, memory_kib, passes) in (0, 4));

create table passkey (
  id uuid primary key,
  user_id uuid not null references sign_in on delete cascade,
  credential_id bytea not null unique,
  -- COSE_Key (RFC 9052 §7).
  public_key bytea not null,
  -- Signatures that the authenticator has counted; 0 where it counts none.
  sign_count bigint not null,
  name text not null,
  -- Host that it was made for: browsers offer it at no other.
  rp_id text not null,
  transports text[] not null,
  -- True if its authenticator copies it to other devices of the person.
  synced boolean not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkey_user on passkey (user_id, created_at);

-- Challenges that were answered: each is taken once.
create table passkey_challenge (
  id uuid primary key,
  expires_at timestamptz not null
);
create index passkey_challenge_end on passkey_challenge (expires_at);
