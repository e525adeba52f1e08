-- Secrets by version, and references to built-in variables by id.

-- Every value that a secret had and that something may still need: the present one, and those that kept snapshots name (a
-- rollback deploys them). No foreign key to the variable: a version outlives it. Housekeeping removes what nothing names.
create table variable_secret_version (
  variable_id uuid not null,
  version integer not null,
  organization_id uuid not null references organization on delete cascade,
  -- Encrypted, for the place `variable/<variable_id>/secret_value/<version>`.
  sealed bytea not null,
  created_at timestamptz not null default now(),
  -- When housekeeping first saw that this is no variable's present value any more.
  superseded_at timestamptz,
  primary key (variable_id, version)
);
create index variable_secret_version_organization on variable_secret_version (organization_id);
create index variable_secret_version_superseded on variable_secret_version (superseded_at) where superseded_at is not null;

alter table variable
  drop column secret_value,
  drop column overridden_built_in,
  drop column aliased_built_in,
  -- Built-in variables have no row, but an id that is made of the id of what they tell of (deployments/model/built-in-variables.ts).
  add column overridden_built_in uuid,
  add column aliased_built_in uuid,
  -- The service that the built-in tells of, if it is one: what overrides or aliases it dies with it (decisions.md 30).
  add column built_in_service_id uuid,
  add foreign key (organization_id, built_in_service_id) references service (organization_id, id) on delete cascade,
  add check (num_nonnulls(overridden_id, overridden_built_in, aliased_id, aliased_built_in) <= 1),
  add check (secret_manager_access_id is null or not is_secret);
create index variable_built_in_service on variable (built_in_service_id) where built_in_service_id is not null;
create index variable_secret_manager_access on variable (secret_manager_access_id) where secret_manager_access_id is not null;
