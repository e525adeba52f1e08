-- A variable reads from an access that is there: neither goes while the other is being written.

-- Not validated: what an older release left without its access is told at its next deployment.
alter table variable
  add constraint variable_secret_manager_access_fkey
  foreign key (organization_id, secret_manager_access_id) references secret_manager_access (organization_id, id) not valid;
