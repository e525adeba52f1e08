-- People beside their membership: what they said at sign-up, who is invited, and tokens that reach more than one organization.

alter table user_account add column communication_email text not null default '';

-- The answers to the questions of the sign-up, one record a person.
create table sign_up (
  id uuid primary key,
  user_id uuid not null unique references user_account on delete cascade,
  answers jsonb not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table member_invitation (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  email text not null,
  role_id uuid not null,
  invited_by uuid not null references user_account on delete cascade,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (organization_id, role_id) references role (organization_id, id)
);
create unique index member_invitation_email on member_invitation (organization_id, lower(email));
create index member_invitation_person on member_invitation (lower(email));
create index member_invitation_role on member_invitation (role_id);
create index member_role on member (role_id);

-- Organizations that a token made itself: it acts in them as in its own, so that whoever has no other credentials can go on.
create table api_token_organization (
  token_id uuid not null references api_token on delete cascade,
  organization_id uuid not null references organization on delete cascade,
  primary key (token_id, organization_id)
);
create index api_token_organization_organization on api_token_organization (organization_id);

alter table api_token add check (num_nonnulls(scope, role_id) = 1);
create index api_token_creator on api_token (created_by);
