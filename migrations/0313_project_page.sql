-- Pages of an organization's projects are read, and their total is counted, from the index alone.
create index project_created on project (organization_id, created_at, id);
