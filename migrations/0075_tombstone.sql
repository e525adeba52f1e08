-- What is left outside the database of rows that are gone. Only what stands here is ever collected.

-- A tombstone is written in the transaction that deletes the row that knew of something: what the database does not know is
-- left alone, because a restored one is older than the world (architecture.md, *Data*). No foreign keys: it outlives what it names.
create table tombstone (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('SERVICE', 'IMAGE', 'ENVIRONMENT', 'DEPLOYMENT')),
  organization_id uuid not null,
  project_id uuid not null,
  environment_id uuid not null,
  service_id uuid,
  -- Whose checkouts may be left (DEPLOYMENT): each machine looks at its own, so these stay until they are old.
  deployment_id uuid,
  -- Reference of an image (IMAGE).
  image text,
  -- Where it lies: a runtime, and the machine whose processes alone reach it; null when any does.
  runtime text not null,
  node_id uuid,
  -- Number of the environment's newest deployment at that time.
  number bigint not null,
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  last_error text,
  created_at timestamptz not null default now()
);
create index tombstone_due on tombstone (next_at) where kind <> 'DEPLOYMENT';
create index tombstone_environment on tombstone (environment_id);
create unique index tombstone_deployment on tombstone (deployment_id) where kind = 'DEPLOYMENT';

create function bury_services() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, runtime, node_id, number)
  select 'SERVICE', e.organization_id, e.project_id, e.id, gone.id, c.runtime, c.node_id, e.deployment_number
  from gone
  join environment e on e.id = gone.environment_id
  join cluster c on c.id = e.cluster_id
  -- Where nothing was ever deployed, nothing can be left.
  where e.deployment_number > 0;
  return null;
end $$;
create trigger service_bury after delete on service
  referencing old table as gone for each statement execute function bury_services();

-- A release that goes with its service finds no service any more: the service's own tombstone covers its images.
create function bury_images() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, gone.image, c.runtime, c.node_id, e.deployment_number
  from gone
  join service s on s.id = gone.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where gone.image is not null
    and not exists (select from release r where r.service_id = gone.service_id and r.image = gone.image);
  return null;
end $$;
create trigger release_bury after delete on release
  referencing old table as gone for each statement execute function bury_images();

-- What was built and never became a release.
create function bury_unreleased_images() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, t.output ->> 'image', c.runtime, c.node_id, e.deployment_number
  from deployment_step t
  join service s on s.id = t.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where t.deployment_id = new.id and t.name = 'BUILD' and t.status = 'SUCCESS' and t.output ->> 'image' is not null
    and not exists (select from release r where r.service_id = t.service_id and r.image = t.output ->> 'image');
  return null;
end $$;
create trigger deployment_bury_images after update of status on deployment
  for each row when (new.status = 'ENDED' and old.status <> 'ENDED' and new.outcome <> 'SUCCESS')
  execute function bury_unreleased_images();

-- A deployment that is gone soon after its end, or before it, may have left a checkout where it ran.
create function bury_deployments() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, deployment_id, runtime, number)
  select 'DEPLOYMENT', gone.organization_id, coalesce((gone.snapshot ->> 'projectId')::uuid, gone.environment_id), gone.environment_id, gone.id, '', gone.number
  from gone
  where gone.ended_at is null or gone.ended_at > now() - interval '1 day'
  on conflict do nothing;
  return null;
end $$;
create trigger deployment_bury after delete on deployment
  referencing old table as gone for each statement execute function bury_deployments();

create function bury_environments() returns trigger language plpgsql as $$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, runtime, node_id, number)
  select 'ENVIRONMENT', gone.organization_id, gone.project_id, gone.id, c.runtime, c.node_id, gone.deployment_number
  from gone join cluster c on c.id = gone.cluster_id
  where gone.deployment_number > 0;
  return null;
end $$;
create trigger environment_bury after delete on environment
  referencing old table as gone for each statement execute function bury_environments();

-- For the limits: which deployments a kept release names, and which ended long ago.
create index release_deployment on release (deployment_id);
create index deployment_ended on deployment (ended_at) where status = 'ENDED';
