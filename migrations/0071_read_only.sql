-- Whether the installation is read-only is asked when something is written: so the state ends in one row's update, and the triggers can
-- be taken away afterwards table by table, without ever holding several tables against readers.

create or replace function refuse_while_read_only() returns trigger language plpgsql as $$
begin
  if exists (select from installation where read_only_since is not null) then
    raise exception using errcode = 'QD001', message =
      'Nothing can be written: the database was restored from a backup and the installation is read-only. '
      'Look at `quarterdeck world`, then end this with `quarterdeck restore --accept`.';
  end if;
  return null;
end $$;
