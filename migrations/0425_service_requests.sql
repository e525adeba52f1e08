-- Requests that the proxies answered for a service, in the intervals of service_metric.
create table service_requests (
  organization_id uuid not null references organization(id) on delete cascade,
  service_id uuid not null,
  resolution int not null,
  at timestamptz not null,
  -- Time in which requests were counted.
  seconds double precision not null,
  -- Answers by the hundreds of their status, and by the classes of their time.
  statuses bigint[] not null,
  latencies bigint[] not null,
  primary key (service_id, resolution, at),
  foreign key (organization_id, service_id) references service (organization_id, id) on delete cascade
);
create index service_requests_time on service_requests (resolution, at);

-- Time within which a share of requests was answered, as Prometheus estimates it from classes: evenly spread within a class, and the last
-- bound for what took longer than all bounds. Null without requests.
create function latency_quantile(counts bigint[], bounds int[], share double precision) returns double precision
language sql immutable parallel safe as $$
  select coalesce(bounds[c.n - 1], 0) + (coalesce(bounds[c.n], bounds[c.n - 1]) - coalesce(bounds[c.n - 1], 0)) * (c.wanted - c.before) / c.count
  from (
    select n, count, sum(count) over (order by n) - count as before, sum(count) over () * share as wanted
    from unnest(counts) with ordinality as t (count, n)
  ) c
  where c.count > 0 and c.before + c.count >= c.wanted
  order by c.n limit 1
$$;
