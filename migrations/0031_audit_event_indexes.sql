-- Each filter of the list of events has an index in the order of the list, so that a page costs what it holds.

drop index audit_event_target;
create index audit_event_by_target on audit_event (organization_id, target_id, at desc, id desc);
create index audit_event_by_target_type on audit_event (organization_id, target_type, at desc, id desc);
create index audit_event_by_type on audit_event (organization_id, event_type, at desc, id desc);
create index audit_event_by_project on audit_event (organization_id, project_id, at desc, id desc);
create index audit_event_by_environment on audit_event (organization_id, environment_id, at desc, id desc);
create index audit_event_by_person on audit_event (organization_id, triggered_by, at desc, id desc);
