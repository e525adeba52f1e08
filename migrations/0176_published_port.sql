-- Ports of machines that services are published on: each belongs to one service of the whole installation. A claim is written before
-- the service that it is for (hence the deferred key), and triggers keep claims what the configuration says, whoever writes it.
create table published_port (
  -- The machine of a host or docker cluster; the cluster itself where it is on no machine of the installation.
  place_id uuid not null,
  protocol text not null check (protocol in ('TCP', 'UDP')),
  port integer not null check (port between 1 and 65535),
  organization_id uuid not null,
  service_id uuid not null,
  primary key (place_id, protocol, port),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
    deferrable initially deferred
);
create index published_port_service on published_port (organization_id, service_id);

create function published_ports_of(kind text, spec jsonb) returns table (protocol text, port integer) language sql immutable as $$
  select one ->> 'protocol', coalesce((one ->> 'external_port')::int, (one ->> 'internal_port')::int)
  from jsonb_array_elements(
    case when kind in ('APPLICATION', 'CONTAINER') and jsonb_typeof(spec -> 'ports') = 'array' then spec -> 'ports' else '[]' end) one
  where (one ->> 'publicly_accessible')::boolean and one ->> 'protocol' in ('TCP', 'UDP')
  union all
  select 'TCP', (spec -> 'access' ->> 'external_port')::int
  where kind = 'DATABASE' and spec -> 'access' ->> 'external_port' is not null
$$;

create function claim_published_ports() returns trigger language plpgsql as $$
begin
  delete from published_port claim
  where claim.organization_id = new.organization_id and claim.service_id = new.id
    and not exists (select from published_ports_of(new.kind, new.spec) p where p.protocol = claim.protocol and p.port = claim.port);
  insert into published_port (place_id, protocol, port, organization_id, service_id)
  select coalesce(c.node_id, c.id), p.protocol, p.port, new.organization_id, new.id
  from published_ports_of(new.kind, new.spec) p
  join environment e on e.organization_id = new.organization_id and e.id = new.environment_id
  join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
  on conflict do nothing;
  return null;
end $$;
create trigger service_published_ports after insert or update of spec on service
  for each row execute function claim_published_ports();

-- Of services that share a port today the oldest keeps it; the others are told when they are deployed.
insert into published_port (place_id, protocol, port, organization_id, service_id)
select coalesce(c.node_id, c.id), p.protocol, p.port, s.organization_id, s.id
from service s
cross join lateral published_ports_of(s.kind, s.spec) p
join environment e on e.organization_id = s.organization_id and e.id = s.environment_id
join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
order by s.created_at, s.id
on conflict do nothing;
