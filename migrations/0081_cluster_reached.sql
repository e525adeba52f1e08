-- When a cluster's runtime last answered: what runs on one that has not answered for long shows UNAVAILABLE, and nothing is written for it.

alter table cluster add column reached_at timestamptz;
