-- What a person's tokens may do has a version that moves, in the transaction of the change, whenever it could be something else.
-- A process that remembers the caller behind a token reads this version in the statement that loads the addressed thing: while it is
-- the one that was read with the caller, the caller holds, and a revocation holds at once everywhere (service.md §5).

create table access_version (
  user_id uuid primary key,
  -- Random, so that none comes back: not after a restore either.
  version uuid not null default gen_random_uuid()
);

create function access_changed(users uuid[]) returns void language sql as $$
  insert into access_version (user_id) select distinct one from unnest(users) as one where one is not null order by one
  on conflict (user_id) do update set version = default
$$;

create function access_changed_by_token() returns trigger language plpgsql as $$
begin
  perform access_changed(array[old.created_by, new.created_by]);
  return null;
end $$;
create trigger access_changed after update or delete on api_token
  for each row execute function access_changed_by_token();

create function access_changed_by_token_organization() returns trigger language plpgsql as $$
begin
  perform access_changed(array(select created_by from api_token where id in (old.token_id, new.token_id)));
  return null;
end $$;
create trigger access_changed after insert or update or delete on api_token_organization
  for each row execute function access_changed_by_token_organization();

create function access_changed_by_member() returns trigger language plpgsql as $$
begin
  perform access_changed(array[old.user_id, new.user_id]);
  return null;
end $$;
create trigger access_changed after insert or update or delete on member
  for each row execute function access_changed_by_member();

create function access_changed_by_role() returns trigger language plpgsql as $$
begin
  perform access_changed(array(
    select user_id from member where role_id = old.id union select created_by from api_token where role_id = old.id));
  return null;
end $$;
create trigger access_changed after update or delete on role
  for each row execute function access_changed_by_role();

insert into access_version (user_id) select distinct user_id from member;
