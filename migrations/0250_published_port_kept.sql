-- A port of a machine stays its service's while the workload that runs may listen on it: until a deployment without it has succeeded, or
-- nothing of the service runs any more. Before, another service could take it as soon as the configuration did without it.
create or replace function claim_published_ports() returns trigger language plpgsql as $$
begin
  delete from published_port claim
  where claim.organization_id = new.organization_id and claim.service_id = new.id
    and not exists (select from published_ports_of(new.kind, new.spec) p where p.protocol = claim.protocol and p.port = claim.port)
    and not (new.wanted = 'running' and exists (
      select from release r cross join lateral published_ports_of(new.kind, r.snapshot -> 'spec') p
      where r.organization_id = new.organization_id and r.id = new.release_id and p.protocol = claim.protocol and p.port = claim.port))
    -- What is being deployed was configured earlier: the end of it decides.
    and (tg_argv[0] = 'deployed' or not exists (
      select from deployment_service ds join deployment d on d.organization_id = ds.organization_id and d.id = ds.deployment_id
      where ds.organization_id = new.organization_id and ds.service_id = new.id and d.status <> 'ENDED'));
  insert into published_port (place_id, protocol, port, organization_id, service_id)
  select coalesce(c.node_id, c.id), p.protocol, p.port, new.organization_id, new.id
  from published_ports_of(new.kind, new.spec) p
  join environment e on e.organization_id = new.organization_id and e.id = new.environment_id
  join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
  on conflict do nothing;
  return null;
end $$;

drop trigger service_published_ports on service;
create trigger service_published_ports after insert or update of spec on service
  for each row execute function claim_published_ports('configured');
create trigger service_deployed_ports after update of release_id, wanted on service for each row
  when (new.release_id is distinct from old.release_id or new.wanted <> 'running' and new.wanted <> old.wanted)
  execute function claim_published_ports('deployed');

-- Ports that a running workload lost so, where nobody else has them.
insert into published_port (place_id, protocol, port, organization_id, service_id)
select coalesce(c.node_id, c.id), p.protocol, p.port, s.organization_id, s.id
from service s
join release r on r.organization_id = s.organization_id and r.id = s.release_id
cross join lateral published_ports_of(s.kind, r.snapshot -> 'spec') p
join environment e on e.organization_id = s.organization_id and e.id = s.environment_id
join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
where s.wanted = 'running'
order by s.created_at, s.id
on conflict do nothing;
