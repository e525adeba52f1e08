-- Which cluster leftovers are on. Those of before, and of deleted clusters, are found by their runtime on their machine.
alter table tombstone add column cluster_id uuid;

create or replace function bury_environments() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, runtime, node_id, cluster_id, number)
  select 'ENVIRONMENT', gone.organization_id, gone.project_id, gone.id, c.runtime, c.node_id, c.id, gone.deployment_number
  from gone join cluster c on c.id = gone.cluster_id
  where gone.deployment_number > 0;
  return null;
end $$;

create or replace function bury_images() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, cluster_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, gone.image, c.runtime, c.node_id, c.id, e.deployment_number
  from gone
  join service s on s.id = gone.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where gone.image is not null
    and not exists (select from release r where r.service_id = gone.service_id and r.image = gone.image);
  return null;
end $$;

create or replace function bury_services() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, runtime, node_id, cluster_id, number)
  select 'SERVICE', e.organization_id, e.project_id, e.id, gone.id, c.runtime, c.node_id, c.id, e.deployment_number
  from gone
  join environment e on e.id = gone.environment_id
  join cluster c on c.id = e.cluster_id
  -- Where nothing was ever deployed, nothing can be left.
  where e.deployment_number > 0;
  return null;
end $$;

create or replace function bury_unreleased_images() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, cluster_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, t.output ->> 'image', c.runtime, c.node_id, c.id, e.deployment_number
  from deployment_step t
  join service s on s.id = t.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where t.deployment_id = new.id and t.name = 'BUILD' and t.status = 'SUCCESS' and t.output ->> 'image' is not null
    and not exists (select from release r where r.service_id = t.service_id and r.image = t.output ->> 'image');
  return null;
end $$;
