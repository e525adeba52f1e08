-- breaking
-- The column was never written: `reached_at` says when a cluster was reached last. A release that runs beside this one has prepared statements that
-- answer the column.

alter table cluster drop column last_reached_at;
