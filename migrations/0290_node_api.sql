-- The URL at which other machines reach the API of a machine, and when it showed last.
alter table node add column api_url text, add column api_seen_at timestamptz;
