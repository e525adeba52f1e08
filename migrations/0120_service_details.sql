-- What histories show of a configuration beside its name (image, tag, schedule): derived from the spec by the kind, and frozen with each request.
alter table service add column details jsonb not null default '{}';
