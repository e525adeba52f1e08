-- Pages of an organization's projects are read in the order of this index: without it each page sorted all of them.
create index project_created on project (organization_id, created_at, id);
