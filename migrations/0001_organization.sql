-- Who uses the installation: organizations, people, roles, tokens.

create table installation (
  singleton boolean primary key default true check (singleton),
  id uuid not null,
  -- Raised by a restore: what was made under a lower epoch never overwrites what a higher one made.
  epoch integer not null default 1,
  -- Encrypted with the key of the vault; one that cannot read it is the wrong one.
  canary bytea,
  created_at timestamptz not null default now()
);

create table organization (
  id uuid primary key,
  name text not null,
  description text,
  plan text not null default 'ENTERPRISE',
  website_url text,
  repository text,
  logo_url text,
  icon_url text,
  admin_emails jsonb,
  -- Data key of the organization, wrapped by the key of the vault.
  data_key bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index organization_name on organization (lower(name));

-- Named so because "user" is a word of SQL.
create table user_account (
  id uuid primary key,
  -- `iss|sub` of the identity provider; null for the first administrator, who has a token only.
  subject text unique,
  email text,
  email_verified boolean not null default false,
  first_name text not null default '',
  last_name text not null default '',
  nickname text not null default '',
  picture_url text not null default '',
  profile jsonb not null default '{}',
  onboarding_use_cases text not null default '',
  onboarding_status text not null default 'IN_PROGRESS',
  last_activity_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- The five built-in roles of an organization are rows too, so that everything can name a role by its id.
create table role (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  built_in boolean not null,
  name text not null,
  description text,
  -- Custom roles: {"clusters": [{cluster_id, permission}], "projects": [{project_id, is_admin, permissions: [{environment_type, permission}]}]}
  permissions jsonb not null default '{"clusters": [], "projects": []}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);
create unique index role_name on role (organization_id, lower(name));

create table member (
  organization_id uuid not null references organization on delete cascade,
  user_id uuid not null references user_account on delete cascade,
  role_id uuid not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (organization_id, user_id),
  foreign key (organization_id, role_id) references role (organization_id, id)
);
create index member_user on member (user_id);

create table api_token (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text,
  -- Exactly one of the two says what the token may do.
  scope text check (scope in ('ADMIN', 'WRITE', 'DEPLOY', 'READ')),
  role_id uuid,
  -- Policy tokens carry conditions instead; see policyApiToken.
  policy jsonb,
  secret_hash bytea not null,
  created_by uuid not null references user_account,
  expires_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (organization_id, role_id) references role (organization_id, id),
  unique (organization_id, id)
);
create unique index api_token_name on api_token (organization_id, lower(name));
create index api_token_role on api_token (role_id);

create table rate_window (
  token_id uuid not null references api_token on delete cascade,
  started_at timestamptz not null,
  used integer not null,
  primary key (token_id, started_at)
);

-- Answers of POST requests that carried an Idempotency-Key, kept for 24 hours.
create table idempotency_record (
  principal_id uuid not null,
  key text not null,
  fingerprint bytea not null,
  status integer not null,
  body text,
  created_at timestamptz not null default now(),
  primary key (principal_id, key)
);
create index idempotency_record_age on idempotency_record (created_at);
