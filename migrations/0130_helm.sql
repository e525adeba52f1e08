-- Values of Helm charts come from repositories of their own, which may be read with another git token than the chart.

alter table service
  add column values_git_token_id uuid generated always as (case kind
    when 'HELM' then (spec #>> '{values_override,file,git,git_repository,git_token_id}')::uuid end) stored,
  add foreign key (organization_id, values_git_token_id) references git_token (organization_id, id);
create index service_values_git_token on service (values_git_token_id) where values_git_token_id is not null;
