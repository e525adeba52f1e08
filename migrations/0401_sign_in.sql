-- People who sign in here, without an identity provider (docs/decisions/0116-people-sign-in-with-a-password.md).

-- Password of a person, by which they sign in under a name.
create table sign_in (
  user_id uuid primary key references user_account on delete cascade,
  name text not null,
  -- argon2id (RFC 9106) with the salt and the costs of this row, so that later releases may raise them.
  password_hash bytea not null,
  password_salt bytea not null,
  memory_kib integer not null,
  passes integer not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
-- Names are ASCII: their case is that of no language.
create unique index sign_in_name on sign_in (lower(name collate "C"));

-- Sessions, which end with the password.
create table sign_in_session (
  id uuid primary key,
  user_id uuid not null references sign_in on delete cascade,
  secret_hash bytea not null,
  user_agent text,
  address text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null,
  expires_at timestamptz not null
);
create index sign_in_session_user on sign_in_session (user_id, created_at);
create index sign_in_session_end on sign_in_session (expires_at);

-- One-time links by which a person sets name and password. A person has one at most.
create table sign_in_link (
  id uuid primary key,
  user_id uuid not null unique references user_account on delete cascade,
  secret_hash bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);

-- Attempts to sign in within a window of time, by a digest of name and address.
create table sign_in_attempt (
  key text not null,
  started_at timestamptz not null,
  used integer not null,
  primary key (key, started_at)
);

-- Digest of the secret in the link of an invitation; null for those made before.
alter table member_invitation add column secret_hash bytea;
