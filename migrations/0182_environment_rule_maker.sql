-- A schedule does what whoever set its hours may do when they begin or end. Null for rules from before: they hold as they are.

alter table environment_deployment_rule add column set_by uuid references user_account (id);
