-- What a restore leaves until somebody has looked at the world: an installation that is read-only, and services that are not started
-- by themselves.

alter table installation
  -- Set while nothing may be written; null in ordinary times.
  add column read_only_since timestamptz,
  -- When the database was last restored, and when the backup that it was restored from was made.
  add column restored_at timestamptz,
  add column restored_from timestamptz;

-- Set by a restore for what should run: it is left alone until it was seen running, or is deployed.
alter table service add column restored_at timestamptz;

-- A restore puts a trigger with this on every table that the API and the engine write, and its acceptance takes them away: no process
-- can write meanwhile, however old its memory is, and in ordinary times nothing is asked.
create function refuse_while_read_only() returns trigger language plpgsql as $$
begin
  raise exception using errcode = 'QD001', message =
    'Nothing can be written: the database was restored from a backup and the installation is read-only. '
    'Look at `quarterdeck world`, then end this with `quarterdeck restore --accept`.';
end $$;
