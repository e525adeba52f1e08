-- What the instances of a service took, in intervals of a minute, ten minutes and an hour. Each measurement is added to all three.
create table service_metric (
  organization_id uuid not null references organization(id) on delete cascade,
  service_id uuid not null,
  -- Length of the interval in seconds, and its start.
  resolution int not null,
  at timestamptz not null,
  -- The last measurement of the interval: instances that run, and their restarts so far.
  instances int not null,
  restarts int not null,
  -- CPU and memory of all instances together. `samples` is the number of measurements that had them, 0 where none could be made.
  samples int not null,
  cpu_milli_sum bigint not null,
  cpu_milli_max int not null,
  cpu_milli_limit int not null,
  memory_bytes_sum bigint not null,
  memory_bytes_max bigint not null,
  memory_bytes_limit bigint not null,
  primary key (service_id, resolution, at),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index service_metric_time on service_metric (resolution, at);
