-- What runs of Terraform showed: plans as data, and the resources of the state. Neither holds a sensitive value.

create table terraform_plan (
  service_id uuid not null,
  -- No foreign key: it outlives the deployment's place in the histories.
  deployment_id uuid not null,
  organization_id uuid not null,
  -- Whether it was applied with success.
  applied boolean not null,
  commit_id text,
  content jsonb not null,
  created_at timestamptz not null default now(),
  primary key (service_id, deployment_id),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index terraform_plan_newest on terraform_plan (service_id, created_at desc);

create table terraform_resource (
  id uuid primary key,
  organization_id uuid not null,
  service_id uuid not null,
  address text not null,
  resource_type text not null,
  name text not null,
  provider text not null,
  mode text not null check (mode in ('managed', 'data')),
  attributes jsonb not null,
  extracted_at timestamptz not null default now(),
  unique (service_id, address),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
