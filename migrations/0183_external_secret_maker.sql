-- A deployment reads an external secret with the right of whoever chose its secret manager access. Null for variables from before.

alter table variable add column access_chosen_by uuid references user_account (id);
