-- Warnings of running services are events of the stream: sockets of statuses are woken by them.
alter table stream_event drop constraint stream_event_type_check,
  add constraint stream_event_type_check check (type in ('deployment', 'service-state', 'service-warning', 'step', 'audit', 'log'));

create function stream_service_warning() returns trigger language plpgsql as $$
declare
  warning service_warning := coalesce(new, old);
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, data)
  select warning.organization_id, clock_timestamp(), 'service-warning', e.project_id, s.environment_id, s.id,
    jsonb_build_object('kind', s.kind, 'name', s.name, 'code', warning.code, 'message', case when tg_op <> 'DELETE' then warning.message end)
  from service s join environment e on e.id = s.environment_id where s.id = warning.service_id;
  return null;
end $$;
create trigger stream_service_warning_change after insert or delete on service_warning
  for each row execute function stream_service_warning();
create trigger stream_service_warning_update after update on service_warning
  for each row when (old.message <> new.message) execute function stream_service_warning();
