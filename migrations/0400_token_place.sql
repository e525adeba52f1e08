-- breaking
-- Project or environment that a token is limited to. It is deleted with that. The release before would not know the limit.

alter table api_token
  add column project_id uuid,
  add column environment_id uuid,
  add constraint api_token_project_fkey foreign key (organization_id, project_id) references project (organization_id, id) on delete cascade,
  add constraint api_token_environment_fkey foreign key (organization_id, environment_id) references environment (organization_id, id) on delete cascade,
  add constraint api_token_place_check check (environment_id is null or project_id is not null);
create index api_token_project on api_token (project_id);
create index api_token_environment on api_token (environment_id);
