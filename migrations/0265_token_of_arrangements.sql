-- The token that hours, external secrets and invitations were arranged with: they take effect with its rights. Null where a session arranged
-- them, and for rows from before. No foreign key: a revoked token leaves its id, since null would stand for the rights of the person.

alter table environment_deployment_rule add column set_with uuid;
alter table variable add column access_chosen_with uuid;
alter table member_invitation add column invited_with uuid;
