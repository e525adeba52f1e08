-- Groups of the identity provider that give roles (docs/decisions/0099-groups-of-the-provider-give-roles.md).

-- Connection of an organization to the identity provider of the settings.
create table enterprise_connection (
  organization_id uuid primary key references organization on delete cascade,
  id uuid not null unique,
  name text not null,
  -- Role of people in none of the groups; null for none.
  default_role_id uuid,
  enforce_group_sync boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (organization_id, default_role_id) references role (organization_id, id)
);

-- Role that a group gives.
create table enterprise_group (
  organization_id uuid not null references enterprise_connection on delete cascade,
  role_id uuid not null,
  group_name text not null,
  primary key (organization_id, role_id, group_name),
  foreign key (organization_id, role_id) references role (organization_id, id)
);

-- Last token of a person whose groups were read.
create table enterprise_sign_in (
  organization_id uuid not null references organization on delete cascade,
  user_id uuid not null references user_account on delete cascade,
  -- Time at which the provider made the token: an older one changes nothing.
  token_at timestamptz not null,
  -- State of the connection that was applied.
  connection_at timestamptz not null,
  -- True if the person is a member by the connection alone.
  gave_membership boolean not null,
  primary key (organization_id, user_id)
);
