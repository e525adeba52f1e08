-- Last look at the requests that the gateway of a cluster has counted. Whoever counts on from it replaces it: no other process counts the same.
create table request_look (
  cluster_id uuid primary key,
  organization_id uuid not null references organization(id) on delete cascade,
  look uuid not null,
  foreign key (organization_id, cluster_id) references cluster (organization_id, id) on delete cascade
);
