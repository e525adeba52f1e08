-- Callers of a workflow's webhook find it by its slug, in all organizations.
create unique index service_workflow_slug on service ((spec ->> 'slug')) where kind = 'AGENTIC_WORKFLOW';
