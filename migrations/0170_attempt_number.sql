-- Attempts at a deployment carry a number that only grows. What an attempt makes outside the database carries it, so that one that lost its
-- claim and goes on for a while is told from the one that goes on with its work: both have the same generation.
alter table deployment add column attempt_number integer not null default 0;
