-- Mail to people (docs/decisions/0121-people-are-mailed-by-the-operators-server.md).

-- Mail that waits to be sent, without its text: that has secrets, which are derived when it is sent.
create table mail (
  id uuid primary key,
  kind text not null,
  -- Invitation or link that it is about; null for a request.
  subject_id uuid,
  -- '' once it has arrived.
  recipient text not null,
  -- Organization in whose name it is sent; null for the installation.
  sender_id uuid,
  status text not null default 'WAITING' check (status in ('WAITING', 'RUNNING', 'ENDED')),
  error text,
  attempts integer not null default 0,
  -- Sendings that have failed.
  tries integer not null default 0,
  claim_token uuid,
  lease_until timestamptz,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz
);
create index mail_open on mail (due_at) where status <> 'ENDED';
create index mail_created on mail (created_at);
create index mail_sender on mail (sender_id, created_at) where sender_id is not null;

-- Address that links for a forgotten password go to. Its owner has shown that they read it, or the operator has set it.
alter table sign_in add column email text;
create index sign_in_email on sign_in (lower(email)) where email is not null;

-- One-time links for a forgotten password, mailed on request. A person has one at most, beside that of the operator.
create table recovery_link (
  id uuid primary key,
  user_id uuid not null unique references sign_in on delete cascade,
  secret_hash bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

-- Digest of the secret in the link that was mailed, which the sender of the invitation never sees; null if none was.
alter table member_invitation add column mail_secret_hash bytea;
