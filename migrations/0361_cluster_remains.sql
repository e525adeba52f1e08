-- Connection of a deleted cluster that still has something to be removed: tombstones name it.

create table cluster_remains (
  cluster_id uuid primary key,
  organization_id uuid not null references organization(id) on delete cascade,
  name text not null,
  -- Sealed as it was in cluster_secret.
  kubeconfig bytea not null,
  created_at timestamptz not null default now()
);
create index cluster_remains_organization on cluster_remains (organization_id);

create function keep_cluster_connection() returns trigger language plpgsql as $$
begin
  insert into cluster_remains (cluster_id, organization_id, name, kubeconfig)
  select old.id, old.organization_id, old.name, secret.value from cluster_secret secret
  where secret.cluster_id = old.id and secret.name = 'kubeconfig'
    -- With the organization goes the key of what it has sealed.
    and exists (select from organization o where o.id = old.organization_id)
    and exists (select from tombstone t where t.cluster_id = old.id and t.kind <> 'DEPLOYMENT');
  return old;
end $$;
create trigger cluster_keep_connection before delete on cluster
  for each row execute function keep_cluster_connection();

create function forget_cluster_connections() returns trigger language plpgsql as $$
begin
  delete from cluster_remains r using (select distinct cluster_id from gone) done
  where r.cluster_id = done.cluster_id
    and not exists (select from tombstone t where t.cluster_id = r.cluster_id and t.kind <> 'DEPLOYMENT');
  return null;
end $$;
create trigger tombstone_forget_connection after delete on tombstone
  referencing old table as gone for each statement execute function forget_cluster_connections();
