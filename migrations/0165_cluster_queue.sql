-- One order for deployments and work on a cluster: both take their number from `cluster.work_number`, under the lock of the cluster's row.

-- Place in the cluster's queue. What was requested before this migration has 0 and comes before all work.
alter table deployment add column queue_number bigint not null default 0;

-- Gives a deployment the next number of its cluster. The row stays locked until the commit: a smaller number is always committed first, so that
-- deployments and work that wait for smaller numbers never wait for each other.
create function number_deployment() returns trigger language plpgsql as $$
begin
  update cluster set work_number = work_number + 1 where organization_id = new.organization_id and id = new.cluster_id
    returning work_number into new.queue_number;
  if not found then
    raise exception 'deployment %: cluster % is not there', new.id, new.cluster_id using errcode = 'foreign_key_violation';
  end if;
  return new;
end $$;
create trigger number_deployment before insert on deployment for each row execute function number_deployment();

create index deployment_queue on deployment (cluster_id, queue_number) where status <> 'ENDED';
