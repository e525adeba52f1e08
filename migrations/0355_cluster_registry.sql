-- Registry that images built for a cluster are pushed to: one of the cluster's organization, which stays as long as a cluster names it.
alter table cluster
  add column container_registry_id uuid generated always as ((advanced_settings ->> 'registry.id')::uuid) stored,
  add foreign key (organization_id, container_registry_id) references container_registry (organization_id, id);
create index cluster_container_registry on cluster (container_registry_id) where container_registry_id is not null;
