-- Calls of the webhooks of agentic workflows that were taken: each makes one run, however often it comes.
create table agentic_run (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  workflow_id uuid not null references service on delete cascade,
  -- The caller's webhook-id, else one of ours.
  call_id text not null,
  -- The throwaway environment and the copy of the workflow in it; both may be gone by now.
  environment_id uuid not null,
  service_id uuid not null,
  created_at timestamptz not null default now(),
  unique (workflow_id, call_id)
);
create index agentic_run_created on agentic_run (created_at);

-- Outputs of runs on their way.
create table agentic_output (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  -- Encrypted: address, headers and body.
  call bytea not null,
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  created_at timestamptz not null default now()
);
create index agentic_output_next on agentic_output (next_at);
