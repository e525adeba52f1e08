-- What there are events about, one row for each thing under each name and place that it had: lists of targets cost by what they
-- hold and not by the number of events. Measured on 1,000,000 events: 0.6 s over the events themselves, 10 ms over this.

create table audit_target (
  organization_id uuid not null,
  target_type text not null,
  -- Digest of what tells rows apart; names can be longer than an index takes.
  key uuid not null,
  target_id uuid not null,
  target_name text not null,
  project_id uuid,
  project_name text,
  environment_id uuid,
  environment_name text,
  first_at timestamptz not null,
  primary key (organization_id, target_type, key)
);

-- Written with each event, in its transaction; nothing is updated, so that writers never wait for each other here.
create function audit_event_note_target() returns trigger language plpgsql as $$
begin
  insert into audit_target values (
    new.organization_id, new.target_type,
    md5(concat_ws(E'\x1f', new.target_id, new.project_id, coalesce(new.environment_id::text, ''), new.target_name, new.project_name, new.environment_name))::uuid,
    new.target_id, new.target_name, new.project_id, new.project_name, new.environment_id, new.environment_name, new.at
  ) on conflict do nothing;
  return null;
end $$;
create trigger audit_event_note_target after insert on audit_event
  for each row when (new.target_id is not null) execute function audit_event_note_target();

insert into audit_target
select distinct on (organization_id, target_type, key) organization_id, target_type, key,
  target_id, target_name, project_id, project_name, environment_id, environment_name, at
from (
  select *, md5(concat_ws(E'\x1f', target_id, project_id, coalesce(environment_id::text, ''), target_name, project_name, environment_name))::uuid as key
  from audit_event where target_id is not null
) as event
order by organization_id, target_type, key, at;

create index audit_event_by_origin on audit_event (organization_id, origin, at desc, id desc);
