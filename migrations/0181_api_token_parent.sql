-- A token that was made with another token ends and is revoked with it.

alter table api_token add column parent_id uuid references api_token (id) on delete cascade;
create index api_token_parent on api_token (parent_id);
