-- What the migrations make, for reading and for the test that compares it; written by `npm run gen`.

create table access_version (
  user_id uuid not null,
  version uuid not null default gen_random_uuid(),
  constraint access_version_pkey PRIMARY KEY (user_id)
);

create table address_link (
  id uuid not null,
  user_id uuid not null,
  email text not null,
  secret_hash bytea not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint address_link_pkey PRIMARY KEY (id),
  constraint address_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES sign_in(user_id) ON DELETE CASCADE,
  constraint address_link_user_id_key UNIQUE (user_id)
);

create table agentic_output (
  id uuid not null,
  organization_id uuid not null,
  call bytea not null,
  attempts integer not null default 0,
  next_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  constraint agentic_output_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint agentic_output_pkey PRIMARY KEY (id)
);
CREATE INDEX agentic_output_next ON public.agentic_output USING btree (next_at);

create table agentic_run (
  id uuid not null,
  organization_id uuid not null,
  workflow_id uuid not null,
  call_id text not null,
  environment_id uuid not null,
  service_id uuid not null,
  created_at timestamp with time zone not null default now(),
  constraint agentic_run_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint agentic_run_pkey PRIMARY KEY (id),
  constraint agentic_run_workflow_id_call_id_key UNIQUE (workflow_id, call_id),
  constraint agentic_run_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES service(id) ON DELETE CASCADE
);
CREATE INDEX agentic_run_created ON public.agentic_run USING btree (created_at);

create table alert_incident (
  organization_id uuid not null,
  rule_id uuid not null,
  subject_id uuid not null,
  name text not null,
  detail text not null,
  part text,
  since timestamp with time zone not null,
  fired_at timestamp with time zone,
  constraint alert_incident_organization_id_rule_id_fkey FOREIGN KEY (organization_id, rule_id) REFERENCES alert_rule(organization_id, id) ON DELETE CASCADE,
  constraint alert_incident_pkey PRIMARY KEY (rule_id, subject_id)
);

create table alert_message (
  id uuid not null,
  number bigint not null generated as identity,
  organization_id uuid not null,
  rule_id uuid not null,
  receiver_id uuid not null,
  content jsonb not null,
  status text not null default 'WAITING'::text,
  error text,
  attempts integer not null default 0,
  tries integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint alert_message_organization_id_receiver_id_fkey FOREIGN KEY (organization_id, receiver_id) REFERENCES alert_receiver(organization_id, id) ON DELETE CASCADE,
  constraint alert_message_organization_id_rule_id_fkey FOREIGN KEY (organization_id, rule_id) REFERENCES alert_rule(organization_id, id) ON DELETE CASCADE,
  constraint alert_message_pkey PRIMARY KEY (id),
  constraint alert_message_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX alert_message_ended ON public.alert_message USING btree (ended_at) WHERE (status = 'ENDED'::text);
CREATE INDEX alert_message_failed ON public.alert_message USING btree (ended_at) WHERE (error IS NOT NULL);
CREATE INDEX alert_message_next ON public.alert_message USING btree (rule_id, receiver_id, number) WHERE (status <> 'ENDED'::text);
CREATE INDEX alert_message_open ON public.alert_message USING btree (due_at) WHERE (status <> 'ENDED'::text);
CREATE INDEX alert_message_receiver ON public.alert_message USING btree (organization_id, receiver_id);
CREATE INDEX alert_message_rule ON public.alert_message USING btree (organization_id, rule_id);

create table alert_receiver (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text not null,
  type text not null,
  send_resolved boolean not null,
  owner text,
  severity text,
  webhook_url bytea,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  delivery_error text,
  failures integer not null default 0,
  paused_until timestamp with time zone,
  mail_to text,
  mail_from text,
  smarthost text,
  auth_username text,
  auth_password bytea,
  require_tls boolean,
  constraint alert_receiver_destination CHECK (
CASE type
    WHEN 'SLACK'::text THEN ((webhook_url IS NOT NULL) AND (num_nonnulls(mail_to, mail_from, smarthost, auth_username, auth_password, require_tls) = 0))
    WHEN 'EMAIL'::text THEN ((webhook_url IS NULL) AND (num_nonnulls(mail_to, mail_from, smarthost, require_tls) = 4) AND (num_nonnulls(auth_username, auth_password) <> 1))
    ELSE false
END),
  constraint alert_receiver_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint alert_receiver_organization_id_id_key UNIQUE (organization_id, id),
  constraint alert_receiver_pkey PRIMARY KEY (id)
);
CREATE INDEX alert_receiver_organization ON public.alert_receiver USING btree (organization_id, created_at, id);
CREATE INDEX alert_receiver_paused ON public.alert_receiver USING btree (paused_until) WHERE (paused_until IS NOT NULL);

create table alert_rule (
  id uuid not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  target_type text not null,
  target_id uuid not null,
  target_project_id uuid,
  name text not null,
  description text not null,
  tag text not null,
  condition jsonb not null,
  for_duration text not null,
  for_seconds integer not null,
  severity text not null,
  presentation jsonb not null,
  enabled boolean not null,
  set_by uuid,
  set_with uuid,
  evaluated_at timestamp with time zone,
  problem text,
  next_at timestamp with time zone not null default now(),
  claim_token uuid,
  lease_until timestamp with time zone,
  failures integer not null default 0,
  failed_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint alert_rule_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint alert_rule_organization_id_id_key UNIQUE (organization_id, id),
  constraint alert_rule_pkey PRIMARY KEY (id),
  constraint alert_rule_set_by_fkey FOREIGN KEY (set_by) REFERENCES user_account(id),
  constraint alert_rule_severity_check CHECK ((severity = ANY (ARRAY['LOW'::text, 'MEDIUM'::text, 'HIGH'::text, 'CRITICAL'::text])))
);
CREATE INDEX alert_rule_due ON public.alert_rule USING btree (next_at);
CREATE INDEX alert_rule_organization ON public.alert_rule USING btree (organization_id, created_at, id);

create table alert_rule_receiver (
  organization_id uuid not null,
  rule_id uuid not null,
  receiver_id uuid not null,
  is_current boolean not null default false,
  error text,
  constraint alert_rule_receiver_organization_id_receiver_id_fkey FOREIGN KEY (organization_id, receiver_id) REFERENCES alert_receiver(organization_id, id) ON DELETE CASCADE,
  constraint alert_rule_receiver_organization_id_rule_id_fkey FOREIGN KEY (organization_id, rule_id) REFERENCES alert_rule(organization_id, id) ON DELETE CASCADE,
  constraint alert_rule_receiver_pkey PRIMARY KEY (rule_id, receiver_id)
);
CREATE INDEX alert_rule_receiver_receiver ON public.alert_rule_receiver USING btree (organization_id, receiver_id);

create table api_token (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  scope text,
  role_id uuid,
  policy jsonb,
  secret_hash bytea not null,
  created_by uuid not null,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  parent_id uuid,
  project_id uuid,
  environment_id uuid,
  constraint api_token_check CHECK ((num_nonnulls(scope, role_id) = 1)),
  constraint api_token_created_by_fkey FOREIGN KEY (created_by) REFERENCES user_account(id),
  constraint api_token_environment_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE CASCADE,
  constraint api_token_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint api_token_organization_id_id_key UNIQUE (organization_id, id),
  constraint api_token_organization_id_role_id_fkey FOREIGN KEY (organization_id, role_id) REFERENCES role(organization_id, id),
  constraint api_token_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES api_token(id) ON DELETE CASCADE,
  constraint api_token_pkey PRIMARY KEY (id),
  constraint api_token_place_check CHECK (((environment_id IS NULL) OR (project_id IS NOT NULL))),
  constraint api_token_project_fkey FOREIGN KEY (organization_id, project_id) REFERENCES project(organization_id, id) ON DELETE CASCADE,
  constraint api_token_scope_check CHECK ((scope = ANY (ARRAY['ADMIN'::text, 'WRITE'::text, 'DEPLOY'::text, 'READ'::text])))
);
CREATE INDEX api_token_creator ON public.api_token USING btree (created_by);
CREATE INDEX api_token_environment ON public.api_token USING btree (environment_id);
CREATE INDEX api_token_parent ON public.api_token USING btree (parent_id);
CREATE INDEX api_token_project ON public.api_token USING btree (project_id);
CREATE INDEX api_token_role ON public.api_token USING btree (role_id);
CREATE UNIQUE INDEX api_token_name ON public.api_token USING btree (organization_id, lower(name));
CREATE TRIGGER access_changed AFTER DELETE OR UPDATE ON public.api_token FOR EACH ROW EXECUTE FUNCTION access_changed_by_token();

create table api_token_organization (
  token_id uuid not null,
  organization_id uuid not null,
  constraint api_token_organization_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint api_token_organization_pkey PRIMARY KEY (token_id, organization_id),
  constraint api_token_organization_token_id_fkey FOREIGN KEY (token_id) REFERENCES api_token(id) ON DELETE CASCADE
);
CREATE INDEX api_token_organization_organization ON public.api_token_organization USING btree (organization_id);
CREATE TRIGGER access_changed AFTER INSERT OR DELETE OR UPDATE ON public.api_token_organization FOR EACH ROW EXECUTE FUNCTION access_changed_by_token_organization();

create table argo_cd (
  id uuid not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  url text not null,
  token bytea not null,
  status text not null,
  reason text,
  message text,
  last_checked_at timestamp with time zone,
  reached_at timestamp with time zone,
  claim_token uuid,
  lease_until timestamp with time zone,
  next_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint argo_cd_cluster_id_key UNIQUE (cluster_id),
  constraint argo_cd_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint argo_cd_organization_id_id_key UNIQUE (organization_id, id),
  constraint argo_cd_pkey PRIMARY KEY (id),
  constraint argo_cd_reason_check CHECK ((reason = ANY (ARRAY['authentication_failed'::text, 'unreachable'::text, 'insufficient_permissions'::text]))),
  constraint argo_cd_status_check CHECK ((status = ANY (ARRAY['connected'::text, 'error'::text])))
);
CREATE INDEX argo_cd_due ON public.argo_cd USING btree (next_at);

create table argo_cd_destination (
  organization_id uuid not null,
  argo_cd_id uuid not null,
  url text not null,
  name text not null,
  applications integer not null,
  constraint argo_cd_destination_organization_id_argo_cd_id_fkey FOREIGN KEY (organization_id, argo_cd_id) REFERENCES argo_cd(organization_id, id) ON DELETE CASCADE,
  constraint argo_cd_destination_pkey PRIMARY KEY (argo_cd_id, url)
);

create table argo_cd_mapping (
  organization_id uuid not null,
  argo_cd_id uuid not null,
  url text not null,
  cluster_id uuid not null,
  created_at timestamp with time zone not null default now(),
  constraint argo_cd_mapping_organization_id_argo_cd_id_fkey FOREIGN KEY (organization_id, argo_cd_id) REFERENCES argo_cd(organization_id, id) ON DELETE CASCADE,
  constraint argo_cd_mapping_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint argo_cd_mapping_pkey PRIMARY KEY (argo_cd_id, url)
);
CREATE INDEX argo_cd_mapping_cluster ON public.argo_cd_mapping USING btree (cluster_id);

create table audit_chain (
  organization_id uuid not null,
  sequence bigint not null,
  hash bytea not null,
  dropped_sequence bigint not null default 0,
  dropped_hash bytea not null default '\x'::bytea,
  dropped_before timestamp with time zone,
  mac bytea not null,
  constraint audit_chain_pkey PRIMARY KEY (organization_id)
);

create table audit_event (
  id uuid not null,
  organization_id uuid not null,
  at timestamp with time zone not null default now(),
  event_type text not null,
  target_type text not null,
  target_id uuid,
  target_name text not null,
  sub_target_type text,
  project_id uuid,
  project_name text,
  environment_id uuid,
  environment_name text,
  triggered_by text not null,
  triggered_by_id uuid,
  origin text not null,
  user_agent text,
  change jsonb,
  original_change jsonb,
  request_id text,
  mac bytea,
  constraint audit_event_pkey PRIMARY KEY (at, id)
) partition by range (at);
CREATE INDEX audit_event_by_environment ON ONLY public.audit_event USING btree (organization_id, environment_id, at DESC, id DESC);
CREATE INDEX audit_event_by_origin ON ONLY public.audit_event USING btree (organization_id, origin, at DESC, id DESC);
CREATE INDEX audit_event_by_person ON ONLY public.audit_event USING btree (organization_id, triggered_by, at DESC, id DESC);
CREATE INDEX audit_event_by_project ON ONLY public.audit_event USING btree (organization_id, project_id, at DESC, id DESC);
CREATE INDEX audit_event_by_target ON ONLY public.audit_event USING btree (organization_id, target_id, at DESC, id DESC);
CREATE INDEX audit_event_by_target_type ON ONLY public.audit_event USING btree (organization_id, target_type, at DESC, id DESC);
CREATE INDEX audit_event_by_type ON ONLY public.audit_event USING btree (organization_id, event_type, at DESC, id DESC);
CREATE INDEX audit_event_feed ON ONLY public.audit_event USING btree (organization_id, at DESC, id DESC);
CREATE TRIGGER audit_event_note_target AFTER INSERT ON public.audit_event FOR EACH ROW WHEN ((new.target_id IS NOT NULL)) EXECUTE FUNCTION audit_event_note_target();
CREATE TRIGGER audit_event_wait_for_seal AFTER INSERT ON public.audit_event FOR EACH ROW EXECUTE FUNCTION audit_event_wait_for_seal();
CREATE TRIGGER stream_audit AFTER INSERT ON public.audit_event FOR EACH ROW EXECUTE FUNCTION stream_audit();

create table audit_seal (
  organization_id uuid not null,
  sequence bigint not null,
  event_at timestamp with time zone not null,
  event_id uuid not null,
  hash bytea not null,
  sealed_at timestamp with time zone not null default now(),
  constraint audit_seal_pkey PRIMARY KEY (organization_id, sequence, sealed_at)
) partition by range (sealed_at);

create table audit_target (
  organization_id uuid not null,
  target_type text not null,
  key uuid not null,
  target_id uuid not null,
  target_name text not null,
  project_id uuid,
  project_name text,
  environment_id uuid,
  environment_name text,
  first_at timestamp with time zone not null,
  constraint audit_target_pkey PRIMARY KEY (organization_id, target_type, key)
);

create table audit_unsealed (
  event_at timestamp with time zone not null,
  event_id uuid not null,
  organization_id uuid not null
);

create table billing_info (
  organization_id uuid not null,
  fields jsonb not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint billing_info_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint billing_info_pkey PRIMARY KEY (organization_id)
);

create table build_report (
  id uuid not null,
  organization_id uuid not null,
  deployment_id uuid not null,
  secret_hash bytea not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  constraint build_report_organization_id_deployment_id_fkey FOREIGN KEY (organization_id, deployment_id) REFERENCES deployment(organization_id, id) ON DELETE CASCADE,
  constraint build_report_pkey PRIMARY KEY (id)
);
CREATE INDEX build_report_deployment ON public.build_report USING btree (deployment_id);
CREATE INDEX build_report_expiry ON public.build_report USING btree (expires_at);

create table cluster (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  runtime text not null,
  node_id uuid,
  region text not null default 'local'::text,
  cloud_provider text not null default 'ON_PREMISE'::text,
  is_default boolean not null default false,
  production boolean not null default false,
  spec jsonb not null default '{}'::jsonb,
  advanced_settings jsonb not null default '{}'::jsonb,
  state text not null default 'READY'::text,
  version bigint not null default 1,
  last_deployment_at timestamp with time zone,
  locked_at timestamp with time zone,
  locked_by text,
  lock_reason text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  settled_state text not null default 'READY'::text,
  deployed_version bigint,
  engine_version text,
  credentials_id uuid,
  credentials_name text,
  routing_table jsonb not null default '[]'::jsonb,
  dns_provider jsonb,
  lock_ttl_days integer,
  lock_expires_at timestamp with time zone,
  work_number bigint not null default 0,
  reached_at timestamp with time zone,
  capabilities jsonb,
  watched_by uuid,
  watched_until timestamp with time zone,
  container_registry_id uuid generated always as (((advanced_settings ->> 'registry.id'::text))::uuid) stored,
  constraint cluster_credentials_fkey FOREIGN KEY (organization_id, credentials_id) REFERENCES credentials(organization_id, id),
  constraint cluster_node_id_fkey FOREIGN KEY (node_id) REFERENCES node(id),
  constraint cluster_organization_id_container_registry_id_fkey FOREIGN KEY (organization_id, container_registry_id) REFERENCES container_registry(organization_id, id),
  constraint cluster_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint cluster_organization_id_id_key UNIQUE (organization_id, id),
  constraint cluster_pkey PRIMARY KEY (id),
  constraint cluster_runtime_check CHECK ((runtime = ANY (ARRAY['host'::text, 'docker'::text, 'kubernetes'::text, 'fake'::text])))
);
CREATE INDEX cluster_container_registry ON public.cluster USING btree (container_registry_id) WHERE (container_registry_id IS NOT NULL);
CREATE INDEX cluster_credentials ON public.cluster USING btree (credentials_id) WHERE (credentials_id IS NOT NULL);
CREATE INDEX cluster_lock_expiry ON public.cluster USING btree (lock_expires_at) WHERE (lock_expires_at IS NOT NULL);
CREATE UNIQUE INDEX cluster_default ON public.cluster USING btree (organization_id) WHERE is_default;
CREATE UNIQUE INDEX cluster_name ON public.cluster USING btree (organization_id, lower(name));
CREATE TRIGGER cluster_keep_connection BEFORE DELETE ON public.cluster FOR EACH ROW EXECUTE FUNCTION keep_cluster_connection();

create table cluster_log (
  work_id uuid not null,
  sequence integer not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  at timestamp with time zone not null default clock_timestamp(),
  step text not null,
  message text not null,
  is_error boolean not null default false,
  hint text,
  constraint cluster_log_pkey PRIMARY KEY (work_id, sequence),
  constraint cluster_log_work_id_fkey FOREIGN KEY (work_id) REFERENCES cluster_work(id) ON DELETE CASCADE
);
CREATE INDEX cluster_log_feed ON public.cluster_log USING btree (cluster_id, at);

create table cluster_remains (
  cluster_id uuid not null,
  organization_id uuid not null,
  name text not null,
  kubeconfig bytea not null,
  created_at timestamp with time zone not null default now(),
  constraint cluster_remains_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint cluster_remains_pkey PRIMARY KEY (cluster_id)
);
CREATE INDEX cluster_remains_organization ON public.cluster_remains USING btree (organization_id);

create table cluster_secret (
  organization_id uuid not null,
  cluster_id uuid not null,
  name text not null,
  value bytea not null,
  updated_at timestamp with time zone not null default now(),
  ends_at timestamp with time zone,
  end_read_at timestamp with time zone,
  constraint cluster_secret_name_check CHECK ((name = ANY (ARRAY['kubeconfig'::text, 'dns'::text]))),
  constraint cluster_secret_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint cluster_secret_pkey PRIMARY KEY (cluster_id, name)
);

create table cluster_work (
  id uuid not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  number bigint not null,
  action text not null,
  status text not null default 'WAITING'::text,
  outcome text,
  error text,
  requested_by uuid,
  requested_by_name text not null,
  origin text not null,
  user_agent text,
  claim_token uuid,
  lease_until timestamp with time zone,
  attempts integer not null default 0,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint cluster_work_action_check CHECK ((action = ANY (ARRAY['DEPLOY'::text, 'DRY_RUN'::text, 'UPGRADE'::text, 'STOP'::text]))),
  constraint cluster_work_cluster_id_number_key UNIQUE (cluster_id, number),
  constraint cluster_work_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint cluster_work_outcome_check CHECK ((outcome = ANY (ARRAY['SUCCESS'::text, 'ERROR'::text]))),
  constraint cluster_work_pkey PRIMARY KEY (id),
  constraint cluster_work_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX cluster_work_open ON public.cluster_work USING btree (created_at) WHERE (status <> 'ENDED'::text);
CREATE UNIQUE INDEX cluster_work_running ON public.cluster_work USING btree (cluster_id) WHERE (status = 'RUNNING'::text);

create table commit_status (
  id uuid not null,
  organization_id uuid not null,
  deployment_id uuid not null,
  service_id uuid not null,
  git_token_id uuid not null,
  host text not null,
  owner text not null,
  name text not null,
  commit text not null,
  reported text,
  status text not null default 'WAITING'::text,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  origin text,
  constraint commit_status_deployment_id_service_id_host_owner_name_comm_key UNIQUE (deployment_id, service_id, host, owner, name, commit),
  constraint commit_status_git_token_id_fkey FOREIGN KEY (git_token_id) REFERENCES git_token(id) ON DELETE CASCADE,
  constraint commit_status_organization_id_deployment_id_fkey FOREIGN KEY (organization_id, deployment_id) REFERENCES deployment(organization_id, id) ON DELETE CASCADE,
  constraint commit_status_pkey PRIMARY KEY (id),
  constraint commit_status_reported_check CHECK ((reported = ANY (ARRAY['pending'::text, 'success'::text, 'failure'::text, 'cancelled'::text]))),
  constraint commit_status_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX commit_status_open ON public.commit_status USING btree (due_at) WHERE (status <> 'ENDED'::text);
CREATE INDEX commit_status_token ON public.commit_status USING btree (git_token_id);

create table container_registry (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  kind text not null,
  url text not null,
  config jsonb not null default '{}'::jsonb,
  secrets bytea,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint container_registry_kind_check CHECK ((kind = ANY (ARRAY['ECR'::text, 'SCALEWAY_CR'::text, 'DOCKER_HUB'::text, 'GITHUB_CR'::text, 'GITHUB_ENTERPRISE_CR'::text, 'GITLAB_CR'::text, 'PUBLIC_ECR'::text, 'DOCR'::text, 'GENERIC_CR'::text, 'GCP_ARTIFACT_REGISTRY'::text, 'AZURE_CR'::text]))),
  constraint container_registry_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint container_registry_organization_id_id_key UNIQUE (organization_id, id),
  constraint container_registry_pkey PRIMARY KEY (id)
);

create table credentials (
  id uuid not null,
  organization_id uuid not null,
  cloud_provider text not null,
  name text not null,
  object_type text not null,
  fields jsonb not null default '{}'::jsonb,
  secrets bytea,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint credentials_cloud_provider_check CHECK ((cloud_provider = ANY (ARRAY['AWS'::text, 'SCW'::text, 'GCP'::text, 'AZURE'::text, 'ON_PREMISE'::text]))),
  constraint credentials_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint credentials_organization_id_id_key UNIQUE (organization_id, id),
  constraint credentials_pkey PRIMARY KEY (id)
);
CREATE INDEX credentials_organization ON public.credentials USING btree (organization_id, created_at, id);

create table cron_schedule (
  service_id uuid not null,
  organization_id uuid not null,
  release_id uuid not null,
  expression text,
  time_zone text,
  concurrency text not null,
  kept_failures integer not null,
  kept_seconds integer,
  next_at timestamp with time zone,
  constraint cron_schedule_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint cron_schedule_pkey PRIMARY KEY (service_id)
);
CREATE INDEX cron_schedule_due ON public.cron_schedule USING btree (next_at) WHERE (next_at IS NOT NULL);

create table custom_domain (
  id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  domain text not null,
  generate_certificate boolean not null,
  use_cdn boolean not null default false,
  validated_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  certificate_state text,
  certificate_expires_at timestamp with time zone,
  certificate_error text,
  challenge text not null,
  proof_state text not null default 'PENDING'::text,
  claimed_at timestamp with time zone not null default now(),
  proof_checked_at timestamp with time zone,
  proven_at timestamp with time zone,
  proof_missing_since timestamp with time zone,
  proof_error text,
  constraint custom_domain_certificate_state_check CHECK ((certificate_state = ANY (ARRAY['UNSUPPORTED'::text, 'PENDING'::text, 'ISSUED'::text, 'FAILED'::text]))),
  constraint custom_domain_organization_id_id_key UNIQUE (organization_id, id),
  constraint custom_domain_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint custom_domain_pkey PRIMARY KEY (id),
  constraint custom_domain_proof_state_check CHECK ((proof_state = ANY (ARRAY['PENDING'::text, 'VALIDATED'::text, 'EXPIRED'::text, 'LOST'::text])))
);
CREATE INDEX custom_domain_check ON public.custom_domain USING btree (proof_checked_at) WHERE (proof_state = ANY (ARRAY['PENDING'::text, 'VALIDATED'::text]));
CREATE INDEX custom_domain_service ON public.custom_domain USING btree (service_id);
CREATE UNIQUE INDEX custom_domain_claim ON public.custom_domain USING btree (organization_id, domain);
CREATE UNIQUE INDEX custom_domain_proven ON public.custom_domain USING btree (domain) WHERE (proof_state = 'VALIDATED'::text);

create table database_backup (
  id uuid not null,
  organization_id uuid not null,
  database_id uuid not null,
  database_name text not null,
  project_id uuid not null,
  project_name text not null,
  environment_id uuid not null,
  environment_name text not null,
  environment_mode text not null,
  name text not null,
  message text not null,
  origin text not null,
  deployment_id uuid,
  status text not null default 'QUEUED'::text,
  error text,
  type text not null,
  version text not null,
  format text not null,
  extension text not null,
  leaves_out text not null,
  node_id uuid,
  key bytea not null,
  bytes bigint,
  stored_bytes bigint,
  requested_by uuid,
  requested_by_name text not null,
  claim_token uuid,
  lease_until timestamp with time zone,
  attempts integer not null default 0,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  expires_at timestamp with time zone,
  of_fork boolean not null default false,
  sending_at timestamp with time zone,
  stored_at timestamp with time zone,
  constraint database_backup_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint database_backup_organization_id_id_key UNIQUE (organization_id, id),
  constraint database_backup_origin_check CHECK ((origin = ANY (ARRAY['MANUAL'::text, 'DAILY'::text, 'BEFORE_DELETE'::text, 'BEFORE_RESTORE'::text, 'FOR_COPY'::text]))),
  constraint database_backup_pkey PRIMARY KEY (id),
  constraint database_backup_status_check CHECK ((status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text, 'READY'::text, 'FAILED'::text])))
);
CREATE INDEX database_backup_database ON public.database_backup USING btree (database_id, created_at DESC);
CREATE INDEX database_backup_expiry ON public.database_backup USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX database_backup_failed ON public.database_backup USING btree (ended_at) WHERE (status = 'FAILED'::text);
CREATE INDEX database_backup_open ON public.database_backup USING btree (created_at) WHERE (status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text]));
CREATE INDEX database_backup_unstored ON public.database_backup USING btree (node_id, created_at) WHERE ((status = 'READY'::text) AND (stored_at IS NULL));
CREATE UNIQUE INDEX database_backup_deployment ON public.database_backup USING btree (deployment_id, database_id) WHERE (deployment_id IS NOT NULL);
CREATE TRIGGER database_backup_bury AFTER DELETE ON public.database_backup REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION bury_backups();

create table database_backup_file (
  backup_id uuid not null,
  organization_id uuid not null,
  node_id uuid not null,
  due_at timestamp with time zone not null,
  stored boolean not null default false,
  constraint database_backup_file_pkey PRIMARY KEY (backup_id)
);
CREATE INDEX database_backup_file_node ON public.database_backup_file USING btree (node_id, due_at);

create table database_fill (
  database_id uuid not null,
  organization_id uuid not null,
  source_id uuid not null,
  source_name text not null,
  backup_id uuid,
  created_at timestamp with time zone not null default now(),
  loaded_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint database_fill_organization_id_database_id_fkey FOREIGN KEY (organization_id, database_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint database_fill_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint database_fill_pkey PRIMARY KEY (database_id)
);

create table database_link (
  organization_id uuid not null,
  database_id uuid not null,
  application_id uuid not null,
  variable_id uuid,
  created_at timestamp with time zone not null default now(),
  constraint database_link_organization_id_application_id_fkey FOREIGN KEY (organization_id, application_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint database_link_organization_id_database_id_fkey FOREIGN KEY (organization_id, database_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint database_link_pkey PRIMARY KEY (database_id, application_id),
  constraint database_link_variable_id_fkey FOREIGN KEY (variable_id) REFERENCES variable(id) ON DELETE SET NULL
);
CREATE INDEX database_link_application ON public.database_link USING btree (application_id);
CREATE INDEX database_link_variable ON public.database_link USING btree (variable_id);

create table database_restore (
  id uuid not null,
  organization_id uuid not null,
  database_id uuid not null,
  backup_id uuid not null,
  status text not null default 'PLANNED'::text,
  replaces jsonb not null,
  safety_backup_id uuid,
  error text,
  requested_by uuid,
  requested_by_name text not null,
  claim_token uuid,
  lease_until timestamp with time zone,
  attempts integer not null default 0,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  loaded_at timestamp with time zone,
  constraint database_restore_organization_id_backup_id_fkey FOREIGN KEY (organization_id, backup_id) REFERENCES database_backup(organization_id, id) ON DELETE CASCADE,
  constraint database_restore_organization_id_database_id_fkey FOREIGN KEY (organization_id, database_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint database_restore_organization_id_id_key UNIQUE (organization_id, id),
  constraint database_restore_pkey PRIMARY KEY (id),
  constraint database_restore_safety_backup_id_fkey FOREIGN KEY (safety_backup_id) REFERENCES database_backup(id) ON DELETE SET NULL,
  constraint database_restore_status_check CHECK ((status = ANY (ARRAY['PLANNED'::text, 'QUEUED'::text, 'RUNNING'::text, 'READY'::text, 'FAILED'::text])))
);
CREATE INDEX database_restore_backup ON public.database_restore USING btree (backup_id);
CREATE INDEX database_restore_database ON public.database_restore USING btree (database_id, created_at DESC);
CREATE INDEX database_restore_open ON public.database_restore USING btree (created_at) WHERE (status = ANY (ARRAY['QUEUED'::text, 'RUNNING'::text]));

create table deployment (
  id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  cluster_id uuid not null,
  number bigint not null,
  action text not null,
  trigger text not null,
  whole_environment boolean not null,
  status text not null default 'WAITING'::text,
  outcome text,
  format integer not null default 1,
  snapshot jsonb not null,
  resolution jsonb,
  plan jsonb,
  requested_by uuid,
  requested_by_name text not null,
  origin text not null,
  automatic boolean not null default false,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  cancel_requested_at timestamp with time zone,
  cancel_forced boolean not null default false,
  error text,
  worker_id bigint,
  claim_token uuid,
  lease_until timestamp with time zone,
  attempts integer not null default 0,
  updated_at timestamp with time zone not null default now(),
  leftover_worker bigint,
  leftover_until timestamp with time zone,
  queue_number bigint not null default 0,
  kinds text[] not null default '{}'::text[],
  attempt_number integer not null default 0,
  resting boolean not null default false,
  epoch integer,
  constraint deployment_action_check CHECK ((action = ANY (ARRAY['DEPLOY'::text, 'STOP'::text, 'RESTART'::text, 'DELETE'::text, 'UNINSTALL'::text, 'RUN'::text]))),
  constraint deployment_environment_id_number_key UNIQUE (environment_id, number),
  constraint deployment_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE CASCADE,
  constraint deployment_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint deployment_organization_id_id_key UNIQUE (organization_id, id),
  constraint deployment_outcome_check CHECK ((outcome = ANY (ARRAY['SUCCESS'::text, 'ERROR'::text, 'CANCELED'::text]))),
  constraint deployment_pkey PRIMARY KEY (id),
  constraint deployment_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'RECAP'::text, 'ENDED'::text])))
);
CREATE INDEX deployment_active ON public.deployment USING btree (status, created_at) WHERE (status <> 'ENDED'::text);
CREATE INDEX deployment_ended ON public.deployment USING btree (ended_at) WHERE (status = 'ENDED'::text);
CREATE INDEX deployment_leftover ON public.deployment USING btree (environment_id) WHERE (leftover_worker IS NOT NULL);
CREATE INDEX deployment_queue ON public.deployment USING btree (cluster_id, queue_number) WHERE (status <> 'ENDED'::text);
CREATE INDEX deployment_waiting ON public.deployment USING btree (environment_id, number) WHERE (status = 'WAITING'::text);
CREATE UNIQUE INDEX deployment_running ON public.deployment USING btree (environment_id) WHERE (status = ANY (ARRAY['RUNNING'::text, 'RECAP'::text]));
CREATE TRIGGER deployment_bury AFTER DELETE ON public.deployment REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION bury_deployments();
CREATE TRIGGER deployment_bury_images AFTER UPDATE OF status ON public.deployment FOR EACH ROW WHEN (((new.status = 'ENDED'::text) AND (old.status <> 'ENDED'::text) AND ((new.outcome <> 'SUCCESS'::text) OR (new.action = 'RUN'::text)))) EXECUTE FUNCTION bury_unreleased_images();
CREATE TRIGGER number_deployment BEFORE INSERT ON public.deployment FOR EACH ROW EXECUTE FUNCTION number_deployment();
CREATE TRIGGER stream_deployment_insert AFTER INSERT ON public.deployment FOR EACH ROW EXECUTE FUNCTION stream_deployment();
CREATE TRIGGER stream_deployment_update AFTER UPDATE ON public.deployment FOR EACH ROW WHEN (((old.status <> new.status) OR ((old.cancel_requested_at IS NULL) <> (new.cancel_requested_at IS NULL)))) EXECUTE FUNCTION stream_deployment();

create table deployment_log (
  deployment_id uuid not null,
  organization_id uuid not null,
  sequence bigint not null,
  service_id uuid,
  content bytea not null,
  lines integer not null,
  created_at timestamp with time zone not null default now(),
  constraint deployment_log_organization_id_deployment_id_fkey FOREIGN KEY (organization_id, deployment_id) REFERENCES deployment(organization_id, id) ON DELETE CASCADE,
  constraint deployment_log_pkey PRIMARY KEY (deployment_id, sequence)
);
CREATE TRIGGER stream_log AFTER INSERT ON public.deployment_log FOR EACH ROW EXECUTE FUNCTION stream_log();

create table deployment_restriction (
  id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  mode text not null,
  type text not null,
  value text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint deployment_restriction_mode_check CHECK ((mode = ANY (ARRAY['EXCLUDE'::text, 'MATCH'::text]))),
  constraint deployment_restriction_organization_id_id_key UNIQUE (organization_id, id),
  constraint deployment_restriction_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint deployment_restriction_pkey PRIMARY KEY (id),
  constraint deployment_restriction_type_check CHECK ((type = 'PATH'::text))
);
CREATE UNIQUE INDEX deployment_restriction_value ON public.deployment_restriction USING btree (service_id, mode, type, value);

create table deployment_service (
  deployment_id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  number bigint not null,
  service_id uuid not null,
  kind text not null,
  name text not null,
  icon_uri text not null,
  stage_id uuid not null,
  stage_name text not null,
  stage_position integer not null,
  action text not null,
  sub_action text not null default 'NONE'::text,
  state text not null,
  commit jsonb,
  details jsonb not null default '{}'::jsonb,
  error text,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  error_code text,
  error_step text,
  error_cause jsonb,
  constraint deployment_service_organization_id_deployment_id_fkey FOREIGN KEY (organization_id, deployment_id) REFERENCES deployment(organization_id, id) ON DELETE CASCADE,
  constraint deployment_service_pkey PRIMARY KEY (deployment_id, service_id)
);
CREATE INDEX deployment_service_environment ON public.deployment_service USING btree (environment_id, number DESC);
CREATE INDEX deployment_service_history ON public.deployment_service USING btree (service_id, number DESC);
CREATE TRIGGER stream_service_state_insert AFTER INSERT ON public.deployment_service FOR EACH ROW EXECUTE FUNCTION stream_service_state();
CREATE TRIGGER stream_service_state_update AFTER UPDATE ON public.deployment_service FOR EACH ROW WHEN ((old.state <> new.state)) EXECUTE FUNCTION stream_service_state();

create table deployment_stage (
  id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  name text not null,
  description text not null default ''::text,
  "position" integer not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint deployment_stage_environment_id_position_key UNIQUE (environment_id, "position") DEFERRABLE INITIALLY DEFERRED,
  constraint deployment_stage_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE CASCADE,
  constraint deployment_stage_organization_id_id_key UNIQUE (organization_id, id),
  constraint deployment_stage_pkey PRIMARY KEY (id)
);

create table deployment_step (
  deployment_id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  "position" integer not null,
  name text not null,
  status text not null,
  attempts integer not null default 1,
  output jsonb,
  error text,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint deployment_step_deployment_id_service_id_fkey FOREIGN KEY (deployment_id, service_id) REFERENCES deployment_service(deployment_id, service_id) ON DELETE CASCADE,
  constraint deployment_step_pkey PRIMARY KEY (deployment_id, service_id, "position"),
  constraint deployment_step_status_check CHECK ((status = ANY (ARRAY['STARTED'::text, 'SUCCESS'::text, 'ERROR'::text, 'CANCEL'::text, 'SKIP'::text])))
);
CREATE TRIGGER stream_step_insert AFTER INSERT ON public.deployment_step FOR EACH ROW EXECUTE FUNCTION stream_step();
CREATE TRIGGER stream_step_update AFTER UPDATE ON public.deployment_step FOR EACH ROW WHEN ((old.status <> new.status)) EXECUTE FUNCTION stream_step();

create table disk_use (
  node_id uuid not null,
  organization_id uuid not null,
  kind text not null,
  bytes bigint not null,
  is_whole boolean not null,
  measured_at timestamp with time zone not null default now(),
  constraint disk_use_kind_check CHECK ((kind = ANY (ARRAY['image'::text, 'volume'::text, 'instance'::text, 'task'::text, 'log'::text, 'checkout'::text]))),
  constraint disk_use_node_id_fkey FOREIGN KEY (node_id) REFERENCES node(id) ON DELETE CASCADE,
  constraint disk_use_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint disk_use_pkey PRIMARY KEY (node_id, organization_id, kind)
);
CREATE INDEX disk_use_organization ON public.disk_use USING btree (organization_id);

create table enterprise_connection (
  organization_id uuid not null,
  id uuid not null,
  name text not null,
  default_role_id uuid,
  enforce_group_sync boolean not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint enterprise_connection_id_key UNIQUE (id),
  constraint enterprise_connection_organization_id_default_role_id_fkey FOREIGN KEY (organization_id, default_role_id) REFERENCES role(organization_id, id),
  constraint enterprise_connection_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint enterprise_connection_pkey PRIMARY KEY (organization_id)
);

create table enterprise_group (
  organization_id uuid not null,
  role_id uuid not null,
  group_name text not null,
  constraint enterprise_group_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES enterprise_connection(organization_id) ON DELETE CASCADE,
  constraint enterprise_group_organization_id_role_id_fkey FOREIGN KEY (organization_id, role_id) REFERENCES role(organization_id, id),
  constraint enterprise_group_pkey PRIMARY KEY (organization_id, role_id, group_name)
);

create table enterprise_sign_in (
  organization_id uuid not null,
  user_id uuid not null,
  token_at timestamp with time zone not null,
  connection_at timestamp with time zone not null,
  gave_membership boolean not null,
  constraint enterprise_sign_in_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint enterprise_sign_in_pkey PRIMARY KEY (organization_id, user_id),
  constraint enterprise_sign_in_user_id_fkey FOREIGN KEY (user_id) REFERENCES user_account(id) ON DELETE CASCADE
);

create table environment (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  cluster_id uuid not null,
  name text not null,
  mode text not null,
  expires_at timestamp with time zone,
  last_updated_by uuid,
  version bigint not null default 1,
  deployment_number bigint not null default 0,
  deleting boolean not null default false,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  fork_ref text,
  fork_commit text,
  constraint environment_fork CHECK (((fork_ref IS NULL) = (fork_commit IS NULL))),
  constraint environment_mode_check CHECK ((mode = ANY (ARRAY['DEVELOPMENT'::text, 'PREVIEW'::text, 'PRODUCTION'::text, 'STAGING'::text]))),
  constraint environment_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id),
  constraint environment_organization_id_id_key UNIQUE (organization_id, id),
  constraint environment_organization_id_project_id_fkey FOREIGN KEY (organization_id, project_id) REFERENCES project(organization_id, id) ON DELETE CASCADE,
  constraint environment_pkey PRIMARY KEY (id)
);
CREATE INDEX environment_cluster ON public.environment USING btree (cluster_id);
CREATE INDEX environment_expiry ON public.environment USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE UNIQUE INDEX environment_name ON public.environment USING btree (project_id, lower(name));
CREATE TRIGGER environment_bury AFTER DELETE ON public.environment REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION bury_environments();

create table environment_deployment_rule (
  id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  auto_stop boolean not null default false,
  auto_preview boolean not null default false,
  on_demand_preview boolean not null default false,
  timezone text not null default 'UTC'::text,
  start_time timestamp with time zone not null default '1970-01-01 08:00:00+00'::timestamp with time zone,
  stop_time timestamp with time zone not null default '1970-01-01 19:00:00+00'::timestamp with time zone,
  weekdays text[] not null default '{MONDAY,TUESDAY,WEDNESDAY,THURSDAY,FRIDAY}'::text[],
  next_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  set_by uuid,
  set_with uuid,
  preview_databases text not null default 'EMPTY'::text,
  constraint environment_deployment_rule_environment_id_key UNIQUE (environment_id),
  constraint environment_deployment_rule_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE CASCADE,
  constraint environment_deployment_rule_organization_id_id_key UNIQUE (organization_id, id),
  constraint environment_deployment_rule_pkey PRIMARY KEY (id),
  constraint environment_deployment_rule_preview_databases_check CHECK ((preview_databases = ANY (ARRAY['EMPTY'::text, 'LAST_BACKUP'::text, 'COPY'::text]))),
  constraint environment_deployment_rule_set_by_fkey FOREIGN KEY (set_by) REFERENCES user_account(id)
);
CREATE INDEX environment_deployment_rule_due ON public.environment_deployment_rule USING btree (next_at) WHERE (next_at IS NOT NULL);

create table failed_instance_log (
  service_id uuid not null,
  organization_id uuid not null,
  deployment_id uuid not null,
  lines jsonb not null,
  created_at timestamp with time zone not null default now(),
  constraint failed_instance_log_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint failed_instance_log_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint failed_instance_log_pkey PRIMARY KEY (service_id)
);

create table git_branch (
  id uuid not null,
  organization_id uuid not null,
  repository text not null,
  branch text not null,
  head text,
  polled text,
  failures integer not null default 0,
  error text,
  polled_at timestamp with time zone,
  next_at timestamp with time zone not null default now(),
  claim_token uuid,
  lease_until timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  wanted integer not null default 0,
  constraint git_branch_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint git_branch_organization_id_repository_branch_key UNIQUE (organization_id, repository, branch),
  constraint git_branch_pkey PRIMARY KEY (id)
);
CREATE INDEX git_branch_due ON public.git_branch USING btree (next_at);

create table git_push (
  id uuid not null,
  number bigint not null generated as identity,
  organization_id uuid not null,
  repository text not null,
  delivery_id text not null,
  body_digest text,
  event text,
  body text,
  branch text,
  before_commit text,
  after_commit text,
  environment_ids uuid[],
  status text not null default 'WAITING'::text,
  outcome jsonb,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  asks integer not null default 0,
  failures integer not null default 0,
  asked_at timestamp with time zone,
  pushes jsonb,
  constraint git_push_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint git_push_organization_id_repository_body_digest_key UNIQUE (organization_id, repository, body_digest),
  constraint git_push_organization_id_repository_delivery_id_key UNIQUE (organization_id, repository, delivery_id),
  constraint git_push_pkey PRIMARY KEY (id),
  constraint git_push_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX git_push_ended ON public.git_push USING btree (organization_id, repository, number DESC) WHERE (status = 'ENDED'::text);
CREATE INDEX git_push_ended_at ON public.git_push USING btree (ended_at) WHERE (status = 'ENDED'::text);
CREATE INDEX git_push_open ON public.git_push USING btree (organization_id, repository, number) WHERE (status <> 'ENDED'::text);
CREATE INDEX git_push_succeeded ON public.git_push USING btree (organization_id, repository, branch, before_commit) WHERE ((status = 'ENDED'::text) AND (error IS NULL) AND (before_commit IS NOT NULL));

create table git_token (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  type text not null,
  token bytea not null,
  git_api_url text not null default ''::text,
  workspace text,
  expired_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint git_token_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint git_token_organization_id_id_key UNIQUE (organization_id, id),
  constraint git_token_pkey PRIMARY KEY (id),
  constraint git_token_type_check CHECK ((type = ANY (ARRAY['GITHUB'::text, 'GITLAB'::text, 'BITBUCKET'::text])))
);

create table git_webhook (
  id uuid not null,
  organization_id uuid not null,
  repository text not null,
  secret bytea not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  heard_at timestamp with time zone,
  git_token_id uuid,
  unused_since timestamp with time zone,
  constraint git_webhook_git_token_id_fkey FOREIGN KEY (git_token_id) REFERENCES git_token(id) ON DELETE SET NULL,
  constraint git_webhook_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint git_webhook_organization_id_id_key UNIQUE (organization_id, id),
  constraint git_webhook_pkey PRIMARY KEY (id)
);
CREATE INDEX git_webhook_token ON public.git_webhook USING btree (git_token_id);
CREATE UNIQUE INDEX git_webhook_repository ON public.git_webhook USING btree (organization_id, repository);

create table helm_repository (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  kind text not null,
  url text not null,
  skip_tls_verification boolean not null default false,
  config jsonb not null default '{}'::jsonb,
  secrets bytea,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint helm_repository_kind_check CHECK ((kind = ANY (ARRAY['HTTPS'::text, 'OCI_ECR'::text, 'OCI_SCALEWAY_CR'::text, 'OCI_DOCKER_HUB'::text, 'OCI_PUBLIC_ECR'::text, 'OCI_GENERIC_CR'::text, 'OCI_GITHUB_CR'::text, 'OCI_GITLAB_CR'::text]))),
  constraint helm_repository_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint helm_repository_organization_id_id_key UNIQUE (organization_id, id),
  constraint helm_repository_pkey PRIMARY KEY (id)
);

create table idempotency_record (
  principal_id uuid not null,
  key text not null,
  fingerprint bytea not null,
  status integer not null,
  body text,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_record_pkey PRIMARY KEY (principal_id, key)
);
CREATE INDEX idempotency_record_age ON public.idempotency_record USING btree (created_at);

create table image_tag (
  id uuid not null,
  organization_id uuid not null,
  registry_id uuid not null,
  image_name text not null,
  tag text not null,
  image text,
  put_off uuid[] not null default '{}'::uuid[],
  looked_at timestamp with time zone,
  failures integer not null default 0,
  error text,
  next_at timestamp with time zone not null default now(),
  claim_token uuid,
  lease_until timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  call_id uuid,
  constraint image_tag_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint image_tag_organization_id_registry_id_fkey FOREIGN KEY (organization_id, registry_id) REFERENCES container_registry(organization_id, id) ON DELETE CASCADE,
  constraint image_tag_organization_id_registry_id_image_name_tag_key UNIQUE (organization_id, registry_id, image_name, tag),
  constraint image_tag_pkey PRIMARY KEY (id)
);
CREATE INDEX image_tag_due ON public.image_tag USING btree (next_at);

create table installation (
  singleton boolean not null default true,
  id uuid not null,
  epoch integer not null default 1,
  canary bytea,
  created_at timestamp with time zone not null default now(),
  read_only_since timestamp with time zone,
  restored_at timestamp with time zone,
  restored_from timestamp with time zone,
  audit_key bytea,
  audited_since timestamp with time zone not null default now(),
  first_organization_id uuid,
  timeline text default current_timeline(),
  constraint installation_pkey PRIMARY KEY (singleton),
  constraint installation_singleton_check CHECK (singleton)
);

create table installation_copy (
  name text not null,
  taken_at timestamp with time zone not null,
  bytes bigint not null,
  stored_at timestamp with time zone not null default now(),
  checked_at timestamp with time zone,
  check_error text,
  constraint installation_copy_pkey PRIMARY KEY (name)
);

create table job_execution (
  id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  service_id uuid not null,
  event text not null,
  state text not null,
  deployment_id uuid,
  scheduled_at timestamp with time zone,
  release_id uuid,
  concurrency text not null default 'Forbid'::text,
  attempts integer not null default 0,
  exit_code integer,
  signal text,
  reason text,
  error text,
  tasks text[] not null default '{}'::text[],
  kept_failures integer not null default 1,
  kept_seconds integer,
  discarded boolean not null default false,
  cancel_requested_at timestamp with time zone,
  claim_token uuid,
  lease_until timestamp with time zone,
  pickups integer not null default 0,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  epoch integer,
  constraint job_execution_concurrency_check CHECK ((concurrency = ANY (ARRAY['Allow'::text, 'Forbid'::text, 'Replace'::text]))),
  constraint job_execution_event_check CHECK ((event = ANY (ARRAY['START'::text, 'STOP'::text, 'DELETE'::text, 'CRON'::text]))),
  constraint job_execution_organization_id_deployment_id_fkey FOREIGN KEY (organization_id, deployment_id) REFERENCES deployment(organization_id, id) ON DELETE SET NULL (deployment_id),
  constraint job_execution_organization_id_id_key UNIQUE (organization_id, id),
  constraint job_execution_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint job_execution_pkey PRIMARY KEY (id),
  constraint job_execution_reason_check CHECK ((reason = ANY (ARRAY['exited'::text, 'timeout'::text, 'lost'::text]))),
  constraint job_execution_state_check CHECK ((state = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'CANCELED'::text])))
);
CREATE INDEX job_execution_active ON public.job_execution USING btree (created_at) WHERE ((state = ANY (ARRAY['WAITING'::text, 'RUNNING'::text])) AND (scheduled_at IS NOT NULL));
CREATE INDEX job_execution_failed ON public.job_execution USING btree (ended_at) WHERE (state = 'FAILED'::text);
CREATE INDEX job_execution_left ON public.job_execution USING btree (service_id) WHERE ((tasks <> '{}'::text[]) OR discarded);
CREATE INDEX job_execution_service ON public.job_execution USING btree (service_id, created_at DESC, id);
CREATE UNIQUE INDEX job_execution_deployment ON public.job_execution USING btree (deployment_id, service_id) WHERE (deployment_id IS NOT NULL);
CREATE UNIQUE INDEX job_execution_due ON public.job_execution USING btree (service_id, scheduled_at) WHERE (scheduled_at IS NOT NULL);

create table job_execution_log (
  execution_id uuid not null,
  organization_id uuid not null,
  sequence integer not null,
  content bytea not null,
  lines integer not null,
  created_at timestamp with time zone not null default now(),
  constraint job_execution_log_organization_id_execution_id_fkey FOREIGN KEY (organization_id, execution_id) REFERENCES job_execution(organization_id, id) ON DELETE CASCADE,
  constraint job_execution_log_pkey PRIMARY KEY (execution_id, sequence)
);

create table mail (
  id uuid not null,
  kind text not null,
  subject_id uuid,
  recipient text not null,
  sender_id uuid,
  status text not null default 'WAITING'::text,
  error text,
  attempts integer not null default 0,
  tries integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint mail_pkey PRIMARY KEY (id),
  constraint mail_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX mail_created ON public.mail USING btree (created_at);
CREATE INDEX mail_open ON public.mail USING btree (due_at) WHERE (status <> 'ENDED'::text);
CREATE INDEX mail_sender ON public.mail USING btree (sender_id, created_at) WHERE (sender_id IS NOT NULL);

create table mcp_server (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text not null,
  url text not null,
  headers bytea,
  header_names text[] not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint mcp_server_check CHECK (((headers IS NULL) = (cardinality(header_names) = 0))),
  constraint mcp_server_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint mcp_server_organization_id_id_key UNIQUE (organization_id, id),
  constraint mcp_server_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX mcp_server_name ON public.mcp_server USING btree (organization_id, lower(name));

create table member (
  organization_id uuid not null,
  user_id uuid not null,
  role_id uuid not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint member_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint member_organization_id_role_id_fkey FOREIGN KEY (organization_id, role_id) REFERENCES role(organization_id, id),
  constraint member_pkey PRIMARY KEY (organization_id, user_id),
  constraint member_user_id_fkey FOREIGN KEY (user_id) REFERENCES user_account(id) ON DELETE CASCADE
);
CREATE INDEX member_role ON public.member USING btree (role_id);
CREATE INDEX member_user ON public.member USING btree (user_id);
CREATE TRIGGER access_changed AFTER INSERT OR DELETE OR UPDATE ON public.member FOR EACH ROW EXECUTE FUNCTION access_changed_by_member();

create table member_invitation (
  id uuid not null,
  organization_id uuid not null,
  email text not null,
  role_id uuid not null,
  invited_by uuid not null,
  expires_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  invited_with uuid,
  secret_hash bytea,
  mail_secret_hash bytea,
  constraint member_invitation_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES user_account(id) ON DELETE CASCADE,
  constraint member_invitation_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint member_invitation_organization_id_role_id_fkey FOREIGN KEY (organization_id, role_id) REFERENCES role(organization_id, id),
  constraint member_invitation_pkey PRIMARY KEY (id)
);
CREATE INDEX member_invitation_person ON public.member_invitation USING btree (lower(email));
CREATE INDEX member_invitation_role ON public.member_invitation USING btree (role_id);
CREATE UNIQUE INDEX member_invitation_email ON public.member_invitation USING btree (organization_id, lower(email));

create table metadata_group (
  id uuid not null,
  organization_id uuid not null,
  kind text not null,
  name text not null,
  entries jsonb not null,
  scopes text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint metadata_group_kind_check CHECK ((kind = ANY (ARRAY['LABELS'::text, 'ANNOTATIONS'::text]))),
  constraint metadata_group_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint metadata_group_organization_id_id_key UNIQUE (organization_id, id),
  constraint metadata_group_pkey PRIMARY KEY (id)
);
CREATE INDEX metadata_group_organization ON public.metadata_group USING btree (organization_id, kind, created_at, id);

create table node (
  id uuid not null,
  name text not null,
  seen_at timestamp with time zone not null default now(),
  api_url text,
  api_seen_at timestamp with time zone,
  drained_at timestamp with time zone,
  lost_at timestamp with time zone,
  is_temporary boolean not null default false,
  constraint node_pkey PRIMARY KEY (id)
);

create table node_disk (
  node_id uuid not null,
  holds text not null,
  total_bytes bigint not null,
  free_bytes bigint not null,
  measured_at timestamp with time zone not null default now(),
  constraint node_disk_holds_check CHECK ((holds = ANY (ARRAY['DATA'::text, 'ENGINE'::text]))),
  constraint node_disk_node_id_fkey FOREIGN KEY (node_id) REFERENCES node(id) ON DELETE CASCADE,
  constraint node_disk_pkey PRIMARY KEY (node_id, holds)
);

create table organization (
  id uuid not null,
  name text not null,
  description text,
  plan text not null default 'ENTERPRISE'::text,
  website_url text,
  repository text,
  logo_url text,
  icon_url text,
  admin_emails jsonb,
  data_key bytea not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  domain_key uuid not null default gen_random_uuid(),
  constraint organization_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX organization_name ON public.organization USING btree (lower(name));

create table outbox (
  id bigint not null generated as identity,
  organization_id uuid not null,
  topic text not null,
  payload jsonb not null,
  created_at timestamp with time zone not null default now(),
  constraint outbox_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint outbox_pkey PRIMARY KEY (id)
);
CREATE INDEX outbox_topic ON public.outbox USING btree (topic, id);

create table passkey (
  id uuid not null,
  user_id uuid not null,
  credential_id bytea not null,
  public_key bytea not null,
  sign_count bigint not null,
  name text not null,
  rp_id text not null,
  transports text[] not null,
  synced boolean not null,
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone,
  constraint passkey_credential_id_key UNIQUE (credential_id),
  constraint passkey_pkey PRIMARY KEY (id),
  constraint passkey_user_id_fkey FOREIGN KEY (user_id) REFERENCES sign_in(user_id) ON DELETE CASCADE
);
CREATE INDEX passkey_user ON public.passkey USING btree (user_id, created_at);

create table passkey_challenge (
  id uuid not null,
  expires_at timestamp with time zone not null,
  constraint passkey_challenge_pkey PRIMARY KEY (id)
);
CREATE INDEX passkey_challenge_end ON public.passkey_challenge USING btree (expires_at);

create table pod_log (
  organization_id uuid not null,
  service_id uuid not null,
  pod_uid text not null,
  pod_name text not null,
  ended_at timestamp with time zone not null,
  content bytea not null,
  constraint pod_log_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint pod_log_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint pod_log_pkey PRIMARY KEY (service_id, pod_uid)
);
CREATE INDEX pod_log_end ON public.pod_log USING btree (ended_at);

create table preview (
  id uuid not null,
  organization_id uuid not null,
  pull_request_id uuid not null,
  source_id uuid,
  environment_id uuid,
  wanted text not null,
  applied_commit text,
  awaited jsonb not null default '{}'::jsonb,
  looked_commit text,
  status text not null default 'WAITING'::text,
  outcome text,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  approved_commit text,
  approved_by uuid,
  approved_with uuid,
  approved_at timestamp with time zone,
  constraint preview_approval CHECK (((approved_commit IS NULL) = (approved_at IS NULL))),
  constraint preview_approved_by_fkey FOREIGN KEY (approved_by) REFERENCES user_account(id),
  constraint preview_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE SET NULL (environment_id),
  constraint preview_organization_id_pull_request_id_fkey FOREIGN KEY (organization_id, pull_request_id) REFERENCES pull_request(organization_id, id) ON DELETE CASCADE,
  constraint preview_organization_id_source_id_fkey FOREIGN KEY (organization_id, source_id) REFERENCES environment(organization_id, id) ON DELETE SET NULL (source_id),
  constraint preview_outcome_check CHECK ((outcome = ANY (ARRAY['PREVIEWED'::text, 'AWAITS_APPROVAL'::text, 'NOT_AFFECTED'::text, 'REFUSED'::text, 'REMOVED'::text]))),
  constraint preview_pkey PRIMARY KEY (id),
  constraint preview_pull_request_id_source_id_key UNIQUE (pull_request_id, source_id),
  constraint preview_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text]))),
  constraint preview_wanted_check CHECK ((wanted = ANY (ARRAY['PRESENT'::text, 'ABSENT'::text])))
);
CREATE INDEX preview_due ON public.preview USING btree (due_at) WHERE (status <> 'ENDED'::text);
CREATE INDEX preview_organization ON public.preview USING btree (organization_id) WHERE (environment_id IS NOT NULL);
CREATE INDEX preview_source ON public.preview USING btree (source_id);
CREATE UNIQUE INDEX preview_environment ON public.preview USING btree (environment_id);

create table project (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  description text,
  version bigint not null default 1,
  deleting boolean not null default false,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint project_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint project_organization_id_id_key UNIQUE (organization_id, id),
  constraint project_pkey PRIMARY KEY (id)
);
CREATE INDEX project_created ON public.project USING btree (organization_id, created_at, id);
CREATE UNIQUE INDEX project_name ON public.project USING btree (organization_id, lower(name));

create table project_deployment_rule (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text,
  mode text not null,
  cluster_id uuid not null,
  auto_stop boolean not null,
  timezone text not null,
  start_time timestamp with time zone not null,
  stop_time timestamp with time zone not null,
  weekdays text[] not null,
  wildcard text not null,
  "position" integer not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint project_deployment_rule_mode_check CHECK ((mode = ANY (ARRAY['DEVELOPMENT'::text, 'PREVIEW'::text, 'PRODUCTION'::text, 'STAGING'::text]))),
  constraint project_deployment_rule_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint project_deployment_rule_organization_id_id_key UNIQUE (organization_id, id),
  constraint project_deployment_rule_organization_id_project_id_fkey FOREIGN KEY (organization_id, project_id) REFERENCES project(organization_id, id) ON DELETE CASCADE,
  constraint project_deployment_rule_pkey PRIMARY KEY (id),
  constraint project_deployment_rule_project_id_position_key UNIQUE (project_id, "position") DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX project_deployment_rule_cluster ON public.project_deployment_rule USING btree (organization_id, cluster_id);

create table published_port (
  place_id uuid not null,
  protocol text not null,
  port integer not null,
  organization_id uuid not null,
  service_id uuid not null,
  constraint published_port_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  constraint published_port_pkey PRIMARY KEY (place_id, protocol, port),
  constraint published_port_port_check CHECK (((port >= 1) AND (port <= 65535))),
  constraint published_port_protocol_check CHECK ((protocol = ANY (ARRAY['TCP'::text, 'UDP'::text])))
);
CREATE INDEX published_port_service ON public.published_port USING btree (organization_id, service_id);

create table pull_request (
  id uuid not null,
  organization_id uuid not null,
  repository text not null,
  number bigint not null,
  state text not null,
  is_fork boolean not null,
  is_labelled boolean not null default false,
  is_asked boolean not null default false,
  head_branch text not null,
  head_commit text not null,
  base_branch text not null,
  base_is_default boolean not null,
  base_commit text,
  changed_at timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  provider text,
  title text,
  author text,
  head_repository text,
  constraint pull_request_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint pull_request_organization_id_id_key UNIQUE (organization_id, id),
  constraint pull_request_organization_id_repository_number_key UNIQUE (organization_id, repository, number),
  constraint pull_request_pkey PRIMARY KEY (id),
  constraint pull_request_state_check CHECK ((state = ANY (ARRAY['OPEN'::text, 'CLOSED'::text])))
);

create table pull_request_call (
  id uuid not null,
  number bigint not null generated as identity,
  organization_id uuid not null,
  repository text not null,
  delivery_id text not null,
  body_digest text not null,
  sender text not null,
  is_comment boolean not null,
  body text,
  status text not null default 'WAITING'::text,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint pull_request_call_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint pull_request_call_organization_id_repository_body_digest_key UNIQUE (organization_id, repository, body_digest),
  constraint pull_request_call_organization_id_repository_delivery_id_key UNIQUE (organization_id, repository, delivery_id),
  constraint pull_request_call_pkey PRIMARY KEY (id),
  constraint pull_request_call_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX pull_request_call_ended_at ON public.pull_request_call USING btree (ended_at) WHERE (status = 'ENDED'::text);
CREATE INDEX pull_request_call_open ON public.pull_request_call USING btree (organization_id, repository, number) WHERE (status <> 'ENDED'::text);

create table pull_request_report (
  id uuid not null,
  organization_id uuid not null,
  pull_request_id uuid not null,
  comment_id text,
  comment_is_gone boolean not null default false,
  told_comment text,
  told_statuses jsonb not null default '{}'::jsonb,
  told_at timestamp with time zone not null default now(),
  requests integer not null default 1,
  status text not null default 'WAITING'::text,
  error text,
  attempts integer not null default 0,
  claim_token uuid,
  lease_until timestamp with time zone,
  due_at timestamp with time zone not null default now(),
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint pull_request_report_organization_id_pull_request_id_fkey FOREIGN KEY (organization_id, pull_request_id) REFERENCES pull_request(organization_id, id) ON DELETE CASCADE,
  constraint pull_request_report_pkey PRIMARY KEY (id),
  constraint pull_request_report_pull_request_id_key UNIQUE (pull_request_id),
  constraint pull_request_report_status_check CHECK ((status = ANY (ARRAY['WAITING'::text, 'RUNNING'::text, 'ENDED'::text])))
);
CREATE INDEX pull_request_report_due ON public.pull_request_report USING btree (due_at) WHERE (status <> 'ENDED'::text);

create table queue_finding (
  id text not null,
  kind text not null,
  message text not null,
  first_seen_at timestamp with time zone not null default now(),
  reported_at timestamp with time zone,
  cluster_id uuid,
  constraint queue_finding_kind_check CHECK ((kind = ANY (ARRAY['CYCLE'::text, 'UNCLAIMED'::text]))),
  constraint queue_finding_pkey PRIMARY KEY (id)
);

create table rate_window (
  token_id uuid not null,
  started_at timestamp with time zone not null,
  used integer not null,
  constraint rate_window_pkey PRIMARY KEY (token_id, started_at),
  constraint rate_window_token_id_fkey FOREIGN KEY (token_id) REFERENCES api_token(id) ON DELETE CASCADE
);

create table recovery_link (
  id uuid not null,
  user_id uuid not null,
  secret_hash bytea not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint recovery_link_pkey PRIMARY KEY (id),
  constraint recovery_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES sign_in(user_id) ON DELETE CASCADE,
  constraint recovery_link_user_id_key UNIQUE (user_id)
);

create table registry_webhook (
  id uuid not null,
  organization_id uuid not null,
  registry_id uuid not null,
  secret bytea not null,
  called_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  constraint registry_webhook_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint registry_webhook_organization_id_registry_id_fkey FOREIGN KEY (organization_id, registry_id) REFERENCES container_registry(organization_id, id) ON DELETE CASCADE,
  constraint registry_webhook_organization_id_registry_id_key UNIQUE (organization_id, registry_id),
  constraint registry_webhook_pkey PRIMARY KEY (id)
);

create table release (
  id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  deployment_id uuid not null,
  service_version bigint not null,
  environment_version bigint not null,
  project_version bigint not null,
  snapshot jsonb not null,
  resolution jsonb not null default '{}'::jsonb,
  image text,
  build_key text,
  created_at timestamp with time zone not null default now(),
  constraint release_organization_id_id_key UNIQUE (organization_id, id),
  constraint release_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint release_pkey PRIMARY KEY (id)
);
CREATE INDEX release_deployment ON public.release USING btree (deployment_id);
CREATE INDEX release_service ON public.release USING btree (service_id, created_at DESC);
CREATE TRIGGER release_bury AFTER DELETE ON public.release REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION bury_images();

create table request_look (
  cluster_id uuid not null,
  organization_id uuid not null,
  look uuid not null,
  constraint request_look_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint request_look_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint request_look_pkey PRIMARY KEY (cluster_id)
);

create table role (
  id uuid not null,
  organization_id uuid not null,
  built_in boolean not null,
  name text not null,
  description text,
  permissions jsonb not null default '{"clusters": [], "projects": []}'::jsonb,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint role_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint role_organization_id_id_key UNIQUE (organization_id, id),
  constraint role_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX role_name ON public.role USING btree (organization_id, lower(name));
CREATE TRIGGER access_changed AFTER DELETE OR UPDATE ON public.role FOR EACH ROW EXECUTE FUNCTION access_changed_by_role();

create table routed_domain (
  organization_id uuid not null,
  service_id uuid not null,
  domain text not null,
  constraint routed_domain_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint routed_domain_pkey PRIMARY KEY (service_id, domain)
);
CREATE INDEX routed_domain_name ON public.routed_domain USING btree (domain);

create table scheduled_task (
  name text not null,
  next_at timestamp with time zone not null default now(),
  locked_until timestamp with time zone,
  last_error text,
  last_ended_at timestamp with time zone,
  lock_token uuid,
  constraint scheduled_task_pkey PRIMARY KEY (name)
);

create table schema_migration (
  version integer not null,
  name text not null,
  checksum text not null,
  breaking boolean not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migration_pkey PRIMARY KEY (version)
);

create table secret_manager_access (
  id uuid not null,
  organization_id uuid not null,
  cluster_id uuid not null,
  name text not null,
  endpoint jsonb not null,
  authentication jsonb not null,
  secret bytea,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint secret_manager_access_organization_id_cluster_id_fkey FOREIGN KEY (organization_id, cluster_id) REFERENCES cluster(organization_id, id) ON DELETE CASCADE,
  constraint secret_manager_access_organization_id_id_key UNIQUE (organization_id, id),
  constraint secret_manager_access_pkey PRIMARY KEY (id)
);
CREATE INDEX secret_manager_access_cluster ON public.secret_manager_access USING btree (cluster_id);

create table service (
  id uuid not null,
  organization_id uuid not null,
  environment_id uuid not null,
  stage_id uuid not null,
  kind text not null,
  name text not null,
  description text,
  icon_uri text not null,
  spec jsonb not null,
  advanced_settings jsonb not null default '{}'::jsonb,
  is_skipped boolean not null default false,
  version bigint not null default 1,
  last_updated_by uuid,
  wanted text not null default 'absent'::text,
  handle jsonb,
  release_id uuid,
  dirty boolean not null default false,
  deleting boolean not null default false,
  newest_commit text,
  git_token_id uuid generated always as ((((spec -> 'git_repository'::text) ->> 'git_token_id'::text))::uuid) stored,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  restored_at timestamp with time zone,
  requires text[] not null default '{}'::text[],
  container_registry_id uuid generated always as (
CASE kind
    WHEN 'CONTAINER'::text THEN ((spec ->> 'registry_id'::text))::uuid
    WHEN 'JOB'::text THEN ((((spec -> 'source'::text) -> 'image'::text) ->> 'registry_id'::text))::uuid
    ELSE NULL::uuid
END) stored,
  helm_repository_id uuid generated always as (
CASE kind
    WHEN 'HELM'::text THEN ((((spec -> 'source'::text) -> 'repository'::text) ->> 'helm_repository_id'::text))::uuid
    ELSE NULL::uuid
END) stored,
  argo_cd_id uuid,
  observed jsonb,
  details jsonb not null default '{}'::jsonb,
  values_git_token_id uuid generated always as (
CASE kind
    WHEN 'HELM'::text THEN ((spec #>> '{values_override,file,git,git_repository,git_token_id}'::text[]))::uuid
    ELSE NULL::uuid
END) stored,
  last_updated_with uuid,
  constraint service_kind_check CHECK ((kind ~ '^[A-Z][A-Z_]*$'::text)),
  constraint service_organization_id_argo_cd_id_fkey FOREIGN KEY (organization_id, argo_cd_id) REFERENCES argo_cd(organization_id, id) ON DELETE CASCADE,
  constraint service_organization_id_container_registry_id_fkey FOREIGN KEY (organization_id, container_registry_id) REFERENCES container_registry(organization_id, id),
  constraint service_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id),
  constraint service_organization_id_git_token_id_fkey FOREIGN KEY (organization_id, git_token_id) REFERENCES git_token(organization_id, id),
  constraint service_organization_id_helm_repository_id_fkey FOREIGN KEY (organization_id, helm_repository_id) REFERENCES helm_repository(organization_id, id),
  constraint service_organization_id_id_key UNIQUE (organization_id, id),
  constraint service_organization_id_release_id_fkey FOREIGN KEY (organization_id, release_id) REFERENCES release(organization_id, id) DEFERRABLE INITIALLY DEFERRED,
  constraint service_organization_id_stage_id_fkey FOREIGN KEY (organization_id, stage_id) REFERENCES deployment_stage(organization_id, id),
  constraint service_organization_id_values_git_token_id_fkey FOREIGN KEY (organization_id, values_git_token_id) REFERENCES git_token(organization_id, id),
  constraint service_pkey PRIMARY KEY (id),
  constraint service_wanted_check CHECK ((wanted = ANY (ARRAY['absent'::text, 'stopped'::text, 'running'::text])))
);
CREATE INDEX service_auto_deploy ON public.service USING btree (organization_id) WHERE (COALESCE((spec ->> 'auto_deploy'::text), ((spec -> 'auto_deploy_config'::text) ->> 'auto_deploy'::text)) = 'true'::text);
CREATE INDEX service_auto_preview ON public.service USING btree (organization_id) WHERE ((spec ->> 'auto_preview'::text) = 'true'::text);
CREATE INDEX service_container_registry ON public.service USING btree (container_registry_id) WHERE (container_registry_id IS NOT NULL);
CREATE INDEX service_git_token ON public.service USING btree (git_token_id) WHERE (git_token_id IS NOT NULL);
CREATE INDEX service_helm_repository ON public.service USING btree (helm_repository_id) WHERE (helm_repository_id IS NOT NULL);
CREATE INDEX service_kind ON public.service USING btree (kind);
CREATE INDEX service_metadata_group ON public.service USING gin (((COALESCE((spec -> 'labels_groups'::text), '[]'::jsonb) || COALESCE((spec -> 'annotations_groups'::text), '[]'::jsonb))));
CREATE INDEX service_stage ON public.service USING btree (stage_id);
CREATE INDEX service_values_git_token ON public.service USING btree (values_git_token_id) WHERE (values_git_token_id IS NOT NULL);
CREATE UNIQUE INDEX service_argo_cd_app ON public.service USING btree (argo_cd_id, ((spec ->> 'app_namespace'::text)), ((spec ->> 'app_name'::text))) WHERE (argo_cd_id IS NOT NULL);
CREATE UNIQUE INDEX service_name ON public.service USING btree (environment_id, lower(name));
CREATE UNIQUE INDEX service_workflow_slug ON public.service USING btree (((spec ->> 'slug'::text))) WHERE (kind = 'AGENTIC_WORKFLOW'::text);
CREATE TRIGGER service_bury AFTER DELETE ON public.service REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION bury_services();
CREATE TRIGGER service_deployed_ports AFTER UPDATE OF release_id, wanted ON public.service FOR EACH ROW WHEN (((new.release_id IS DISTINCT FROM old.release_id) OR ((new.wanted <> 'running'::text) AND (new.wanted <> old.wanted)))) EXECUTE FUNCTION claim_published_ports('deployed');
CREATE TRIGGER service_published_ports AFTER INSERT OR UPDATE OF spec ON public.service FOR EACH ROW EXECUTE FUNCTION claim_published_ports('configured');

create table service_metric (
  organization_id uuid not null,
  service_id uuid not null,
  resolution integer not null,
  at timestamp with time zone not null,
  instances integer not null,
  restarts integer not null,
  samples integer not null,
  cpu_milli_sum bigint not null,
  cpu_milli_max integer not null,
  cpu_milli_limit integer not null,
  memory_bytes_sum bigint not null,
  memory_bytes_max bigint not null,
  memory_bytes_limit bigint not null,
  constraint service_metric_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint service_metric_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint service_metric_pkey PRIMARY KEY (service_id, resolution, at)
);
CREATE INDEX service_metric_time ON public.service_metric USING btree (resolution, at);

create table service_requests (
  organization_id uuid not null,
  service_id uuid not null,
  resolution integer not null,
  at timestamp with time zone not null,
  seconds double precision not null,
  statuses bigint[] not null,
  latencies bigint[] not null,
  constraint service_requests_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint service_requests_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint service_requests_pkey PRIMARY KEY (service_id, resolution, at)
);
CREATE INDEX service_requests_time ON public.service_requests USING btree (resolution, at);

create table service_warning (
  organization_id uuid not null,
  service_id uuid not null,
  code text not null,
  subject text not null,
  message text not null,
  created_at timestamp with time zone not null default now(),
  constraint service_warning_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint service_warning_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint service_warning_pkey PRIMARY KEY (service_id, code, subject)
);
CREATE TRIGGER stream_service_warning_change AFTER INSERT OR DELETE ON public.service_warning FOR EACH ROW EXECUTE FUNCTION stream_service_warning();
CREATE TRIGGER stream_service_warning_update AFTER UPDATE ON public.service_warning FOR EACH ROW WHEN ((old.message <> new.message)) EXECUTE FUNCTION stream_service_warning();

create table sign_in (
  user_id uuid not null,
  name text not null,
  password_hash bytea,
  password_salt bytea,
  memory_kib integer,
  passes integer,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  email text,
  constraint sign_in_password CHECK ((num_nulls(password_hash, password_salt, memory_kib, passes) = ANY (ARRAY[0, 4]))),
  constraint sign_in_pkey PRIMARY KEY (user_id),
  constraint sign_in_user_id_fkey FOREIGN KEY (user_id) REFERENCES user_account(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_email ON public.sign_in USING btree (lower(email)) WHERE (email IS NOT NULL);
CREATE UNIQUE INDEX sign_in_name ON public.sign_in USING btree (lower((name COLLATE "C")));

create table sign_in_attempt (
  key text not null,
  started_at timestamp with time zone not null,
  used integer not null,
  constraint sign_in_attempt_pkey PRIMARY KEY (key, started_at)
);

create table sign_in_link (
  id uuid not null,
  user_id uuid not null,
  secret_hash bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint sign_in_link_pkey PRIMARY KEY (id),
  constraint sign_in_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES user_account(id) ON DELETE CASCADE,
  constraint sign_in_link_user_id_key UNIQUE (user_id)
);

create table sign_in_session (
  id uuid not null,
  user_id uuid not null,
  secret_hash bytea not null,
  user_agent text,
  address text,
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint sign_in_session_pkey PRIMARY KEY (id),
  constraint sign_in_session_user_id_fkey FOREIGN KEY (user_id) REFERENCES sign_in(user_id) ON DELETE CASCADE
);
CREATE INDEX sign_in_session_end ON public.sign_in_session USING btree (expires_at);
CREATE INDEX sign_in_session_user ON public.sign_in_session USING btree (user_id, created_at);

create table sign_up (
  id uuid not null,
  user_id uuid not null,
  answers jsonb not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint sign_up_pkey PRIMARY KEY (id),
  constraint sign_up_user_id_fkey FOREIGN KEY (user_id) REFERENCES user_account(id) ON DELETE CASCADE,
  constraint sign_up_user_id_key UNIQUE (user_id)
);

create table source_upload (
  id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  commit_id text not null,
  tree_id text not null,
  author text not null,
  message text not null,
  committed_at timestamp with time zone not null,
  files integer not null,
  unpacked_bytes bigint not null,
  packed_bytes bigint not null,
  created_at timestamp with time zone not null default now(),
  stored_at timestamp with time zone,
  requested_at timestamp with time zone not null default now(),
  constraint source_upload_commit_id_check CHECK ((commit_id ~ '^[0-9a-f]{40}$'::text)),
  constraint source_upload_organization_id_id_key UNIQUE (organization_id, id),
  constraint source_upload_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint source_upload_pkey PRIMARY KEY (id),
  constraint source_upload_tree_id_check CHECK ((tree_id ~ '^[0-9a-f]{40}$'::text))
);
CREATE INDEX source_upload_commit ON public.source_upload USING btree (service_id, commit_id);
CREATE UNIQUE INDEX source_upload_tree ON public.source_upload USING btree (service_id, tree_id) WHERE (stored_at IS NOT NULL);

create table source_upload_part (
  organization_id uuid not null,
  upload_id uuid not null,
  number integer not null,
  content bytea not null,
  constraint source_upload_part_organization_id_upload_id_fkey FOREIGN KEY (organization_id, upload_id) REFERENCES source_upload(organization_id, id) ON DELETE CASCADE,
  constraint source_upload_part_pkey PRIMARY KEY (upload_id, number)
);

create table stream_event (
  xid xid8 not null default pg_current_xact_id(),
  id bigint not null generated as identity,
  organization_id uuid not null,
  at timestamp with time zone not null,
  type text not null,
  project_id uuid,
  environment_id uuid,
  service_id uuid,
  deployment_id uuid,
  audit_id uuid,
  data jsonb,
  constraint stream_event_pkey PRIMARY KEY (xid, id),
  constraint stream_event_type_check CHECK ((type = ANY (ARRAY['deployment'::text, 'service-state'::text, 'service-warning'::text, 'step'::text, 'audit'::text, 'log'::text])))
);
CREATE INDEX stream_event_organization ON public.stream_event USING btree (organization_id, xid, id);

create table stream_state (
  singleton boolean not null default true,
  line text not null default substr(md5((gen_random_uuid())::text), 1, 12),
  epoch integer not null default 1,
  removed_xid xid8 not null default '0'::xid8,
  removed_id bigint not null default 0,
  constraint stream_state_pkey PRIMARY KEY (singleton),
  constraint stream_state_singleton_check CHECK (singleton)
);

create table terraform_plan (
  service_id uuid not null,
  deployment_id uuid not null,
  organization_id uuid not null,
  applied boolean not null,
  commit_id text,
  content jsonb not null,
  created_at timestamp with time zone not null default now(),
  constraint terraform_plan_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint terraform_plan_pkey PRIMARY KEY (service_id, deployment_id)
);
CREATE INDEX terraform_plan_newest ON public.terraform_plan USING btree (service_id, created_at DESC);

create table terraform_resource (
  id uuid not null,
  organization_id uuid not null,
  service_id uuid not null,
  address text not null,
  resource_type text not null,
  name text not null,
  provider text not null,
  mode text not null,
  attributes jsonb not null,
  extracted_at timestamp with time zone not null default now(),
  constraint terraform_resource_mode_check CHECK ((mode = ANY (ARRAY['managed'::text, 'data'::text]))),
  constraint terraform_resource_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint terraform_resource_pkey PRIMARY KEY (id),
  constraint terraform_resource_service_id_address_key UNIQUE (service_id, address)
);

create table terraform_state (
  service_id uuid not null,
  organization_id uuid not null,
  version bigint not null default 0,
  generation bigint not null default 0,
  run_secret_hash bytea,
  run_secret bytea,
  run_until timestamp with time zone,
  lock jsonb,
  lock_id text,
  lock_generation bigint,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint terraform_state_check CHECK ((((lock IS NULL) = (lock_id IS NULL)) AND ((lock IS NULL) = (lock_generation IS NULL)))),
  constraint terraform_state_check1 CHECK ((((run_secret_hash IS NULL) = (run_secret IS NULL)) AND ((run_secret IS NULL) = (run_until IS NULL)))),
  constraint terraform_state_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint terraform_state_organization_id_service_id_key UNIQUE (organization_id, service_id),
  constraint terraform_state_pkey PRIMARY KEY (service_id)
);

create table terraform_state_version (
  service_id uuid not null,
  organization_id uuid not null,
  version bigint not null,
  content bytea,
  size integer not null,
  generation bigint not null,
  created_at timestamp with time zone not null default now(),
  constraint terraform_state_version_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES terraform_state(organization_id, service_id) ON DELETE CASCADE,
  constraint terraform_state_version_pkey PRIMARY KEY (service_id, version)
);

create table tombstone (
  id bigint not null generated as identity,
  kind text not null,
  organization_id uuid not null,
  project_id uuid not null,
  environment_id uuid not null,
  service_id uuid,
  deployment_id uuid,
  image text,
  runtime text not null,
  node_id uuid,
  number bigint not null,
  attempts integer not null default 0,
  next_at timestamp with time zone not null default now(),
  last_error text,
  created_at timestamp with time zone not null default now(),
  cluster_id uuid,
  constraint tombstone_kind_check CHECK ((kind = ANY (ARRAY['SERVICE'::text, 'IMAGE'::text, 'ENVIRONMENT'::text, 'DEPLOYMENT'::text]))),
  constraint tombstone_pkey PRIMARY KEY (id)
);
CREATE INDEX tombstone_due ON public.tombstone USING btree (next_at) WHERE (kind <> 'DEPLOYMENT'::text);
CREATE INDEX tombstone_environment ON public.tombstone USING btree (environment_id);
CREATE UNIQUE INDEX tombstone_deployment ON public.tombstone USING btree (deployment_id) WHERE (kind = 'DEPLOYMENT'::text);
CREATE TRIGGER tombstone_forget_connection AFTER DELETE ON public.tombstone REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_cluster_connections();

create table user_account (
  id uuid not null,
  subject text,
  email text,
  email_verified boolean not null default false,
  first_name text not null default ''::text,
  last_name text not null default ''::text,
  nickname text not null default ''::text,
  picture_url text not null default ''::text,
  profile jsonb not null default '{}'::jsonb,
  onboarding_use_cases text not null default ''::text,
  onboarding_status text not null default 'IN_PROGRESS'::text,
  last_activity_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  communication_email text not null default ''::text,
  constraint user_account_pkey PRIMARY KEY (id),
  constraint user_account_subject_key UNIQUE (subject)
);

create table variable (
  id uuid not null,
  organization_id uuid not null,
  key text not null,
  is_secret boolean not null,
  value text,
  value_version integer not null default 1,
  scope text not null,
  project_id uuid,
  environment_id uuid,
  service_id uuid,
  mount_path text,
  description text,
  enable_interpolation_in_file boolean not null default false,
  overridden_id uuid,
  aliased_id uuid,
  secret_manager_access_id uuid,
  owned_by text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  overridden_built_in uuid,
  aliased_built_in uuid,
  built_in_service_id uuid,
  output_of uuid,
  output_deployment uuid,
  access_chosen_by uuid,
  access_chosen_with uuid,
  constraint variable_access_chosen_by_fkey FOREIGN KEY (access_chosen_by) REFERENCES user_account(id),
  constraint variable_check CHECK ((num_nonnulls(project_id, environment_id, service_id) = 1)),
  constraint variable_check1 CHECK ((num_nonnulls(overridden_id, overridden_built_in, aliased_id, aliased_built_in) <= 1)),
  constraint variable_check2 CHECK (((secret_manager_access_id IS NULL) OR (NOT is_secret))),
  constraint variable_organization_id_aliased_id_fkey FOREIGN KEY (organization_id, aliased_id) REFERENCES variable(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_built_in_service_id_fkey FOREIGN KEY (organization_id, built_in_service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_environment_id_fkey FOREIGN KEY (organization_id, environment_id) REFERENCES environment(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_id_key UNIQUE (organization_id, id),
  constraint variable_organization_id_output_of_fkey FOREIGN KEY (organization_id, output_of) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_overridden_id_fkey FOREIGN KEY (organization_id, overridden_id) REFERENCES variable(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_project_id_fkey FOREIGN KEY (organization_id, project_id) REFERENCES project(organization_id, id) ON DELETE CASCADE,
  constraint variable_organization_id_service_id_fkey FOREIGN KEY (organization_id, service_id) REFERENCES service(organization_id, id) ON DELETE CASCADE,
  constraint variable_pkey PRIMARY KEY (id),
  constraint variable_scope_check CHECK ((scope ~ '^[A-Z][A-Z_]*$'::text)),
  constraint variable_secret_manager_access_fkey FOREIGN KEY (organization_id, secret_manager_access_id) REFERENCES secret_manager_access(organization_id, id) NOT VALID
);
CREATE INDEX variable_aliased ON public.variable USING btree (aliased_id) WHERE (aliased_id IS NOT NULL);
CREATE INDEX variable_built_in_service ON public.variable USING btree (built_in_service_id) WHERE (built_in_service_id IS NOT NULL);
CREATE INDEX variable_output ON public.variable USING btree (output_of) WHERE (output_of IS NOT NULL);
CREATE INDEX variable_output_environment ON public.variable USING btree (environment_id) WHERE (output_of IS NOT NULL);
CREATE INDEX variable_overridden ON public.variable USING btree (overridden_id) WHERE (overridden_id IS NOT NULL);
CREATE INDEX variable_secret_manager_access ON public.variable USING btree (secret_manager_access_id) WHERE (secret_manager_access_id IS NOT NULL);
CREATE UNIQUE INDEX variable_key_environment ON public.variable USING btree (environment_id, key, is_secret) WHERE (environment_id IS NOT NULL);
CREATE UNIQUE INDEX variable_key_project ON public.variable USING btree (project_id, key, is_secret) WHERE (project_id IS NOT NULL);
CREATE UNIQUE INDEX variable_key_service ON public.variable USING btree (service_id, key, is_secret) WHERE (service_id IS NOT NULL);

create table variable_secret_version (
  variable_id uuid not null,
  version integer not null,
  organization_id uuid not null,
  sealed bytea not null,
  created_at timestamp with time zone not null default now(),
  superseded_at timestamp with time zone,
  constraint variable_secret_version_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint variable_secret_version_pkey PRIMARY KEY (variable_id, version)
);
CREATE INDEX variable_secret_version_organization ON public.variable_secret_version USING btree (organization_id);
CREATE INDEX variable_secret_version_superseded ON public.variable_secret_version USING btree (superseded_at) WHERE (superseded_at IS NOT NULL);

create table webhook (
  id uuid not null,
  organization_id uuid not null,
  kind text not null,
  target_url text not null,
  target_secret bytea,
  description text not null default ''::text,
  enabled boolean not null,
  events text[] not null,
  subscribed_events text[] not null,
  project_names_filter text[] not null default '{}'::text[],
  environment_types_filter text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  failures integer not null default 0,
  paused_until timestamp with time zone,
  constraint webhook_kind_check CHECK ((kind = ANY (ARRAY['STANDARD'::text, 'SLACK'::text]))),
  constraint webhook_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint webhook_organization_id_id_key UNIQUE (organization_id, id),
  constraint webhook_pkey PRIMARY KEY (id)
);
CREATE INDEX webhook_paused ON public.webhook USING btree (paused_until) WHERE (paused_until IS NOT NULL);

create table webhook_attempt (
  id uuid not null,
  organization_id uuid not null,
  webhook_id uuid not null,
  delivery_id uuid not null,
  number integer not null,
  kind text not null,
  matched_event text not null,
  target_url text not null,
  started_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  status_code integer,
  response_body text,
  constraint webhook_attempt_delivery_id_number_key UNIQUE (delivery_id, number),
  constraint webhook_attempt_organization_id_delivery_id_fkey FOREIGN KEY (organization_id, delivery_id) REFERENCES webhook_delivery(organization_id, id) ON DELETE CASCADE,
  constraint webhook_attempt_organization_id_webhook_id_fkey FOREIGN KEY (organization_id, webhook_id) REFERENCES webhook(organization_id, id) ON DELETE CASCADE,
  constraint webhook_attempt_pkey PRIMARY KEY (id)
);
CREATE INDEX webhook_attempt_list ON public.webhook_attempt USING btree (webhook_id, id DESC);

create table webhook_delivery (
  id uuid not null,
  organization_id uuid not null,
  webhook_id uuid not null,
  kind text not null,
  matched_event text not null,
  body text not null,
  state text not null default 'PENDING'::text,
  attempts integer not null default 0,
  tries integer not null default 0,
  next_attempt_at timestamp with time zone not null default now(),
  claim_token uuid,
  created_at timestamp with time zone not null default now(),
  constraint webhook_delivery_organization_id_id_key UNIQUE (organization_id, id),
  constraint webhook_delivery_organization_id_webhook_id_fkey FOREIGN KEY (organization_id, webhook_id) REFERENCES webhook(organization_id, id) ON DELETE CASCADE,
  constraint webhook_delivery_pkey PRIMARY KEY (id),
  constraint webhook_delivery_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'DELIVERED'::text, 'FAILED'::text, 'CANCELED'::text])))
);
CREATE INDEX webhook_delivery_age ON public.webhook_delivery USING btree (created_at) WHERE (state <> 'PENDING'::text);
CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (next_attempt_at) INCLUDE (webhook_id) WHERE (state = 'PENDING'::text);
CREATE INDEX webhook_delivery_failed ON public.webhook_delivery USING btree (next_attempt_at) WHERE (state = 'FAILED'::text);
CREATE INDEX webhook_delivery_webhook ON public.webhook_delivery USING btree (webhook_id, state);

CREATE OR REPLACE FUNCTION public.access_changed(users uuid[])
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into access_version (user_id) select distinct one from unnest(users) as one where one is not null order by one
  on conflict (user_id) do update set version = default
$function$;

CREATE OR REPLACE FUNCTION public.access_changed_by_member()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform access_changed(array[old.user_id, new.user_id]);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.access_changed_by_role()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform access_changed(array(
    select user_id from member where role_id = old.id union select created_by from api_token where role_id = old.id));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.access_changed_by_token()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform access_changed(array[old.created_by, new.created_by]);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.access_changed_by_token_organization()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform access_changed(array(select created_by from api_token where id in (old.token_id, new.token_id)));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.audit_event_note_target()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into audit_target values (
    new.organization_id, new.target_type,
    md5(concat_ws(E'\x1f', new.target_id, new.project_id, coalesce(new.environment_id::text, ''), new.target_name, new.project_name, new.environment_name))::uuid,
    new.target_id, new.target_name, new.project_id, new.project_name, new.environment_id, new.environment_name, new.at
  ) on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.audit_event_wait_for_seal()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into audit_unsealed values (new.at, new.id, new.organization_id);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_backups()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into database_backup_file (backup_id, organization_id, node_id, due_at, stored)
  select gone.id, gone.organization_id, gone.node_id, greatest(now(), gone.lease_until), gone.sending_at is not null
    from gone where gone.node_id is not null
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_deployments()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, deployment_id, runtime, number)
  select 'DEPLOYMENT', gone.organization_id, coalesce((gone.snapshot ->> 'projectId')::uuid, gone.environment_id), gone.environment_id, gone.id, '', gone.number
  from gone
  where gone.ended_at is null or gone.ended_at > now() - interval '1 day'
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_environments()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, runtime, node_id, cluster_id, number)
  select 'ENVIRONMENT', gone.organization_id, gone.project_id, gone.id, c.runtime, c.node_id, c.id, gone.deployment_number
  from gone join cluster c on c.id = gone.cluster_id
  where gone.deployment_number > 0;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_images()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, cluster_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, gone.image, c.runtime, c.node_id, c.id, e.deployment_number
  from gone
  join service s on s.id = gone.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where gone.image is not null
    and not exists (select from release r where r.service_id = gone.service_id and r.image = gone.image);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_services()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, runtime, node_id, cluster_id, number)
  select 'SERVICE', e.organization_id, e.project_id, e.id, gone.id, c.runtime, c.node_id, c.id, e.deployment_number
  from gone
  join environment e on e.id = gone.environment_id
  join cluster c on c.id = e.cluster_id
  -- Where nothing was ever deployed, nothing can be left.
  where e.deployment_number > 0;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.bury_unreleased_images()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into tombstone (kind, organization_id, project_id, environment_id, service_id, image, runtime, node_id, cluster_id, number)
  select distinct 'IMAGE', e.organization_id, e.project_id, e.id, s.id, t.output ->> 'image', c.runtime, c.node_id, c.id, e.deployment_number
  from deployment_step t
  join service s on s.id = t.service_id
  join environment e on e.id = s.environment_id
  join cluster c on c.id = e.cluster_id
  where t.deployment_id = new.id and t.name = 'BUILD' and t.status = 'SUCCESS' and t.output ->> 'image' is not null
    and not exists (select from release r where r.service_id = t.service_id and r.image = t.output ->> 'image');
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.claim_published_ports()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from published_port claim
  where claim.organization_id = new.organization_id and claim.service_id = new.id
    and not exists (select from published_ports_of(new.kind, new.spec) p where p.protocol = claim.protocol and p.port = claim.port)
    and not (new.wanted = 'running' and exists (
      select from release r cross join lateral published_ports_of(new.kind, r.snapshot -> 'spec') p
      where r.organization_id = new.organization_id and r.id = new.release_id and p.protocol = claim.protocol and p.port = claim.port))
    -- What is being deployed was configured earlier: the end of it decides.
    and (tg_argv[0] = 'deployed' or not exists (
      select from deployment_service ds join deployment d on d.organization_id = ds.organization_id and d.id = ds.deployment_id
      where ds.organization_id = new.organization_id and ds.service_id = new.id and d.status <> 'ENDED'));
  insert into published_port (place_id, protocol, port, organization_id, service_id)
  select coalesce(c.node_id, c.id), p.protocol, p.port, new.organization_id, new.id
  from published_ports_of(new.kind, new.spec) p
  join environment e on e.organization_id = new.organization_id and e.id = new.environment_id
  join cluster c on c.organization_id = e.organization_id and c.id = e.cluster_id
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.current_timeline()
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8);
exception when others then
  -- Standbys, and servers that hide their log, tell none.
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.forget_cluster_connections()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from cluster_remains r using (select distinct cluster_id from gone) done
  where r.cluster_id = done.cluster_id
    and not exists (select from tombstone t where t.cluster_id = r.cluster_id and t.kind <> 'DEPLOYMENT');
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.hold_claim(organization uuid, deployment_id uuid, token uuid)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  cancel boolean;
begin
  select cancel_requested_at is not null into cancel from deployment
    where organization_id = organization and id = deployment_id and claim_token = token and status <> 'ENDED' for update;
  if not found then
    raise exception 'the claim on the deployment is lost' using errcode = 'QD002';
  end if;
  return cancel;
end $function$;

CREATE OR REPLACE FUNCTION public.keep_cluster_connection()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into cluster_remains (cluster_id, organization_id, name, kubeconfig)
  select old.id, old.organization_id, old.name, secret.value from cluster_secret secret
  where secret.cluster_id = old.id and secret.name = 'kubeconfig'
    -- With the organization goes the key of what it has sealed.
    and exists (select from organization o where o.id = old.organization_id)
    and exists (select from tombstone t where t.cluster_id = old.id and t.kind <> 'DEPLOYMENT');
  return old;
end $function$;

CREATE OR REPLACE FUNCTION public.latency_quantile(counts bigint[], bounds integer[], share double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select coalesce(bounds[c.n - 1], 0) + (coalesce(bounds[c.n], bounds[c.n - 1]) - coalesce(bounds[c.n - 1], 0)) * (c.wanted - c.before) / c.count
  from (
    select n, count, sum(count) over (order by n) - count as before, sum(count) over () * share as wanted
    from unnest(counts) with ordinality as t (count, n)
  ) c
  where c.count > 0 and c.before + c.count >= c.wanted
  order by c.n limit 1
$function$;

CREATE OR REPLACE FUNCTION public.number_deployment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update cluster set work_number = work_number + 1 where organization_id = new.organization_id and id = new.cluster_id
    returning work_number into new.queue_number;
  if not found then
    raise exception 'deployment %: cluster % is not there', new.id, new.cluster_id using errcode = 'foreign_key_violation';
  end if;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.published_ports_of(kind text, spec jsonb)
 RETURNS TABLE(protocol text, port integer)
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select one ->> 'protocol', coalesce((one ->> 'external_port')::int, (one ->> 'internal_port')::int)
  from jsonb_array_elements(
    case when kind in ('APPLICATION', 'CONTAINER') and jsonb_typeof(spec -> 'ports') = 'array' then spec -> 'ports' else '[]' end) one
  where (one ->> 'publicly_accessible')::boolean and one ->> 'protocol' in ('TCP', 'UDP')
  union all
  select 'TCP', (spec -> 'access' ->> 'external_port')::int
  where kind = 'DATABASE' and spec -> 'access' ->> 'external_port' is not null
$function$;

CREATE OR REPLACE FUNCTION public.refuse_while_read_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (select from installation where read_only_since is not null) then
    raise exception using errcode = 'QD001', message =
      'Nothing can be written: the database was restored from a backup and the installation is read-only. '
      'Look at `quarterdeck world`, then end this with `quarterdeck restore --accept`.';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_audit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, audit_id)
  values (new.organization_id, new.at, 'audit', new.project_id, new.environment_id, new.target_id, new.id);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_deployment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, deployment_id, data) values (
    new.organization_id, clock_timestamp(), 'deployment',
    (select project_id from environment where id = new.environment_id), new.environment_id, new.id,
    jsonb_build_object('number', new.number, 'action', new.action, 'trigger', new.trigger, 'status', new.status,
      'outcome', new.outcome, 'canceling', new.cancel_requested_at is not null));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_log()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, deployment_id, data)
  select new.organization_id, clock_timestamp(), 'log',
    (select project_id from environment where id = deployment.environment_id), deployment.environment_id, new.deployment_id,
    jsonb_build_object('number', deployment.number, 'sequence', new.sequence)
  from deployment where deployment.id = new.deployment_id;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_service_state()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, deployment_id, data) values (
    new.organization_id, clock_timestamp(), 'service-state',
    (select project_id from environment where id = new.environment_id), new.environment_id, new.service_id, new.deployment_id,
    jsonb_build_object('number', new.number, 'kind', new.kind, 'name', new.name, 'action', new.action,
      'sub_action', new.sub_action, 'state', new.state));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_service_warning()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  warning service_warning := coalesce(new, old);
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, data)
  select warning.organization_id, clock_timestamp(), 'service-warning', e.project_id, s.environment_id, s.id,
    jsonb_build_object('kind', s.kind, 'name', s.name, 'code', warning.code, 'message', case when tg_op <> 'DELETE' then warning.message end)
  from service s join environment e on e.id = s.environment_id where s.id = warning.service_id;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.stream_step()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into stream_event (organization_id, at, type, project_id, environment_id, service_id, deployment_id, data)
  select new.organization_id, clock_timestamp(), 'step',
    (select project_id from environment where id = service.environment_id), service.environment_id, new.service_id, new.deployment_id,
    jsonb_build_object('number', service.number, 'kind', service.kind, 'service', service.name, 'position', new.position,
      'name', new.name, 'status', new.status, 'started_at', new.started_at, 'ended_at', new.ended_at)
  from deployment_service service where service.deployment_id = new.deployment_id and service.service_id = new.service_id;
  return null;
end $function$;
