-- When the content of a restore had been handed to its server: a later attempt restarts the server and loads nothing again.

alter table database_restore add column loaded_at timestamptz;
