-- Which kinds of service there are is known to the program alone (src/kernel/service-kinds.ts): a further kind takes no migration.
alter table service drop constraint service_kind_check, add constraint service_kind_check check (kind ~ '^[A-Z][A-Z_]*$');
alter table variable drop constraint variable_scope_check, add constraint variable_scope_check check (scope ~ '^[A-Z][A-Z_]*$');
