-- The organization of the installation's operator, which the setting QUARTERDECK_ORGANIZATION_RUNTIMES calls `first`. It stays
-- when that organization is gone: no other one becomes the first.
alter table installation add column first_organization_id uuid;
update installation set first_organization_id = (select id from organization order by created_at, id limit 1);
