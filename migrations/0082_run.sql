-- Commands that run to their end: what a service needs of its runtime, and what an execution leaves.

-- RUN executes something of a service and leaves it as it was: an event of a job, a Terraform plan.
alter table deployment drop constraint deployment_action_check;
alter table deployment add constraint deployment_action_check
  check (action in ('DEPLOY', 'STOP', 'RESTART', 'DELETE', 'UNINSTALL', 'RUN'));

-- What of a runtime the configuration needs (runtimes/runtime.ts): a cluster without it is refused before anything is queued.
alter table service add column requires text[] not null default '{}';

-- A variable that the execution of a service wrote; it dies with the service. `output_deployment` wrote it last.
alter table variable
  add column output_of uuid,
  add column output_deployment uuid,
  add foreign key (organization_id, output_of) references service (organization_id, id) on delete cascade;
create index variable_output on variable (output_of) where output_of is not null;
create index variable_output_environment on variable (environment_id) where output_of is not null;
