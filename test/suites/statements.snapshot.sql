begin;

commit;

delete from "address_link" where "user_id" = $;

delete from "alert_receiver" where "organization_id" = $ and "id" = $;

delete from "alert_rule" where "organization_id" = $ and "id" = $;

delete from "api_token" where "organization_id" = $ and "id" = $;

delete from "argo_cd" where "organization_id" = $ and "id" = $;

delete from "argo_cd_mapping" where "organization_id" = $ and "argo_cd_id" = $ and "url" = $;

delete from "build_report" where "organization_id" = $ and "id" = $;

delete from "cluster" where "organization_id" = $ and "id" = $;

delete from "cluster_secret" where "organization_id" = $ and "cluster_id" = $ and "name" = $;

delete from "container_registry" where "organization_id" = $ and "id" = $;

delete from "credentials" where "organization_id" = $ and "id" = $;

delete from "custom_domain" where "organization_id" = $ and "id" = $;

delete from "database_backup" where "organization_id" = $ and "id" = $ and not exists (select from database_restore r where r.backup_id = database_backup.id and r.status in ('QUEUED', 'RUNNING'));

delete from "database_link" where "organization_id" = $ and "database_id" = $ and "application_id" = $ returning variable_id as "variable_id";

delete from "deployment_restriction" where "organization_id" = $ and "id" = $;

delete from "deployment_stage" where "organization_id" = $ and "id" = $;

delete from "git_token" where "organization_id" = $ and "id" = $;

delete from "helm_repository" where "organization_id" = $ and "id" = $;

delete from "mcp_server" where "organization_id" = $ and "id" = $;

delete from "member_invitation" where "organization_id" = $ and "id" = $;

delete from "member_invitation" where "organization_id" = $ and lower(email) = $ and "expires_at" <= $;

delete from "metadata_group" where "organization_id" = $ and "id" = $;

delete from "project_deployment_rule" where "organization_id" = $ and "id" = $;

delete from "recovery_link" where "user_id" = $;

delete from "registry_webhook" where "organization_id" = $ and "registry_id" = $;

delete from "role" where "organization_id" = $ and "id" = $;

delete from "service" where "organization_id" = $ and "id" = any($);

delete from "service" where "organization_id" = $ and "id" = any($) and "argo_cd_id" is not null;

delete from "sign_in_link" where "user_id" = $;

delete from "sign_in_session" where "user_id" = $;

delete from "sign_in_session" where "user_id" = $ and "id" not in (select "id" from "sign_in_session" where "user_id" = $ and "expires_at" > $ and "last_used_at" > $ order by "created_at" desc, "id" limit $);

delete from "variable" where "organization_id" = $ and "id" = $;

delete from "webhook" where "organization_id" = $ and "id" = $;

delete from "webhook_delivery" where "organization_id" = $ and "webhook_id" = $;

delete from alert_message where organization_id = $ and rule_id = $ and receiver_id <> all($::uuid[]) and status <> 'ENDED';

delete from alert_rule_receiver where organization_id = $ and rule_id = $ and receiver_id <> all($::uuid[]);

insert into "alert_receiver" ("id", "organization_id", "name", "description", "send_resolved", "owner", "severity", "type", "mail_to", "mail_from", "smarthost", "auth_username", "auth_password", "require_tls", "webhook_url") values ($…) returning *;

insert into "alert_rule" ("id", "organization_id", "cluster_id", "target_type", "target_id", "target_project_id", "name", "description", "tag", "condition", "for_duration", "for_seconds", "severity", "presentation", "enabled", "next_at", "set_by", "set_with") values ($…);

insert into "api_token" ("id", "organization_id", "name", "description", "scope", "role_id", "project_id", "environment_id", "secret_hash", "created_by", "expires_at", "parent_id", "policy") values ($…);

insert into "api_token" ("id", "organization_id", "name", "scope", "secret_hash", "created_by") values ($…);

insert into "api_token_organization" ("token_id", "organization_id") values ($…);

insert into "argo_cd" ("id", "organization_id", "cluster_id", "url", "token", "status", "reason", "message", "last_checked_at") values ($…, now()) on conflict ("cluster_id") do update set "url" = $, "token" = $, "status" = $, "reason" = $, "message" = $, "last_checked_at" = now(), "next_at" = now(), "claim_token" = $, "lease_until" = $, "updated_at" = now();

insert into "argo_cd_mapping" ("organization_id", "argo_cd_id", "url", "cluster_id") values ($…) on conflict ("argo_cd_id", "url") do update set "cluster_id" = $;

insert into "audit_event" ("id", "organization_id", "event_type", "target_type", "target_id", "target_name", "sub_target_type", "project_id", "project_name", "environment_id", "environment_name", "triggered_by", "triggered_by_id", "origin", "user_agent", "request_id", "at", "change", "original_change", "mac") values ($…);

insert into "billing_info" ("organization_id", "fields") values ($…) on conflict ("organization_id") do update set "fields" = $, "updated_at" = now();

insert into "build_report" ("id", "organization_id", "deployment_id", "secret_hash", "expires_at") values ($…, now() + make_interval(secs => $));

insert into "cluster" ("id", "organization_id", "name", "runtime", "is_default") values ($…);

insert into "cluster" ("id", "organization_id", "runtime", "node_id", "cloud_provider", "credentials_id", "credentials_name", "description", "production", "name", "region", "is_default", "spec") values ($…);

insert into "container_registry" ("id", "organization_id", "name", "description", "kind", "url", "secrets", "config") values ($…);

insert into "credentials" ("id", "organization_id", "cloud_provider", "name", "object_type", "fields", "secrets") values ($…);

insert into "custom_domain" ("id", "organization_id", "service_id", "domain", "challenge", "generate_certificate", "use_cdn") values ($…) on conflict ("organization_id", "domain") do nothing returning *;

insert into "database_backup" ("id", "organization_id", "database_id", "database_name", "project_id", "project_name", "environment_id", "environment_name", "environment_mode", "of_fork", "name", "message", "origin", "type", "version", "format", "extension", "leaves_out", "key", "requested_by", "requested_by_name", "expires_at") values ($…);

insert into "database_link" ("organization_id", "database_id", "application_id", "variable_id") values ($…);

insert into "database_restore" ("id", "organization_id", "database_id", "backup_id", "requested_by_name", "replaces") values ($…);

insert into "deployment" ("id", "organization_id", "environment_id", "cluster_id", "number", "action", "trigger", "whole_environment", "requested_by", "requested_by_name", "origin", "automatic", "kinds", "format", "snapshot", "resolution") values ($…) returning (select node_id from cluster where cluster.id = deployment.cluster_id) as "node_id";

insert into "deployment_restriction" ("id", "organization_id", "service_id", "mode", "type", "value", "created_at") values ($…, now() + $ * interval '1 microsecond') returning *;

insert into "deployment_restriction" ("id", "organization_id", "service_id", "mode", "type", "value", "created_at") values ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond') returning *;

insert into "deployment_restriction" ("id", "organization_id", "service_id", "mode", "type", "value", "created_at") values ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond') returning *;

insert into "deployment_service" ("deployment_id", "organization_id", "environment_id", "number", "service_id", "kind", "name", "icon_uri", "stage_id", "stage_name", "stage_position", "action", "sub_action", "details", "state") values ($…);

insert into "deployment_service" ("deployment_id", "organization_id", "environment_id", "number", "service_id", "kind", "name", "icon_uri", "stage_id", "stage_name", "stage_position", "action", "sub_action", "details", "state") values ($…), …;

insert into "deployment_stage" ("id", "name", "description", "organization_id", "environment_id", "position") values ($…), …;

insert into "deployment_stage" ("id", "organization_id", "environment_id", "name", "description", "position") values ($…);

insert into "environment" ("id", "organization_id", "project_id", "cluster_id", "name", "mode", "last_updated_by") values ($…);

insert into "environment_deployment_rule" ("id", "organization_id", "environment_id", "auto_preview", "on_demand_preview", "preview_databases", "set_by", "set_with", "auto_stop", "timezone", "start_time", "stop_time", "weekdays", "next_at") values ($…);

insert into "environment_deployment_rule" ("id", "organization_id", "environment_id", "set_by", "set_with", "next_at") values ($…);

insert into "git_token" ("id", "organization_id", "name", "description", "type", "token", "git_api_url", "workspace", "expired_at") values ($…);

insert into "helm_repository" ("id", "organization_id", "name", "description", "skip_tls_verification", "kind", "url", "secrets", "config") values ($…);

insert into "installation" ("id", "canary") values ($…) on conflict do nothing;

insert into "job_execution" ("id", "organization_id", "environment_id", "service_id", "event", "state", "scheduled_at", "ended_at") values ($…);

insert into "mcp_server" ("id", "organization_id", "name", "description", "url", "headers", "header_names") values ($…);

insert into "member" ("organization_id", "user_id", "role_id") values ($…);

insert into "member_invitation" ("id", "secret_hash", "mail_secret_hash", "organization_id", "email", "role_id", "invited_by", "invited_with", "expires_at") values ($…);

insert into "metadata_group" ("id", "organization_id", "kind", "name", "scopes", "entries") values ($…);

insert into "organization" ("id", "name", "data_key") values ($…);

insert into "passkey" ("id", "credential_id", "public_key", "sign_count", "name", "rp_id", "transports", "synced", "user_id") values ($…);

insert into "preview" ("id", "organization_id", "pull_request_id", "source_id", "wanted", "status", "approved_commit", "approved_by", "approved_at", "outcome", "ended_at") values ($…);

insert into "project" ("id", "organization_id", "name", "description") values ($…);

insert into "project_deployment_rule" ("id", "organization_id", "project_id", "name", "description", "mode", "cluster_id", "wildcard", "auto_stop", "timezone", "start_time", "stop_time", "weekdays", "position") values ($…, (select coalesce(max(position), -1) + 1 from project_deployment_rule where organization_id = $ and project_id = $));

insert into "pull_request" ("id", "organization_id", "repository", "number", "state", "is_fork", "head_branch", "head_commit", "base_branch", "base_is_default", "provider", "title", "author", "head_repository", "changed_at") values ($…);

insert into "registry_webhook" ("id", "organization_id", "registry_id", "secret") values ($…) returning *;

insert into "role" ("id", "organization_id", "built_in", "name") values ($…), …;

insert into "role" ("id", "organization_id", "name", "description", "permissions", "built_in") values ($…);

insert into "secret_manager_access" ("id", "organization_id", "cluster_id", "name", "endpoint", "authentication", "secret") values ($…);

insert into "service" ("id", "organization_id", "environment_id", "stage_id", "argo_cd_id", "name", "icon_uri", "kind", "description", "spec", "observed") values ($…);

insert into "service" ("id", "organization_id", "environment_id", "stage_id", "kind", "name", "description", "icon_uri", "requires", "is_skipped", "last_updated_by", "last_updated_with", "spec", "details", "advanced_settings", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "service" ("id", "organization_id", "environment_id", "stage_id", "kind", "name", "description", "icon_uri", "requires", "is_skipped", "last_updated_by", "last_updated_with", "spec", "details", "advanced_settings", "created_at") values ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond');

insert into "service" ("id", "organization_id", "environment_id", "stage_id", "kind", "name", "description", "icon_uri", "requires", "last_updated_by", "last_updated_with", "spec", "details") values ($…);

insert into "sign_in" ("user_id", "name", "password_hash", "password_salt", "memory_kib", "passes") values ($…) on conflict ("user_id") do update set "name" = $, "password_hash" = $, "password_salt" = $, "memory_kib" = $, "passes" = $, "updated_at" = now();

insert into "sign_in_attempt" ("key", "started_at", "used") values ($…) on conflict ("key", "started_at") do update set "used" = sign_in_attempt.used + 1 where "sign_in_attempt"."used" < $ returning "used";

insert into "sign_in_link" ("id", "user_id", "secret_hash", "created_at", "expires_at") values ($…) on conflict ("user_id") do update set "id" = $, "user_id" = $, "secret_hash" = $, "created_at" = $, "expires_at" = $;

insert into "sign_in_session" ("id", "user_id", "secret_hash", "user_agent", "address", "created_at", "last_used_at", "expires_at") values ($…);

insert into "sign_up" ("id", "user_id", "answers") values ($…) on conflict ("user_id") do update set "answers" = $, "updated_at" = now() returning *;

insert into "source_upload" ("id", "organization_id", "service_id", "commit_id", "tree_id", "author", "message", "committed_at", "files", "unpacked_bytes", "packed_bytes") values ($…);

insert into "source_upload_part" ("organization_id", "upload_id", "number", "content") values ($…);

insert into "terraform_plan" ("service_id", "deployment_id", "organization_id", "applied", "content") values ($…);

insert into "user_account" ("id", "nickname", "first_name", "last_name") values ($…);

insert into "variable" ("id", "organization_id", "scope", "environment_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "aliased_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "environment_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "overridden_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "environment_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "secret_manager_access_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "project_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "aliased_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "project_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "secret_manager_access_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "service_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "aliased_built_in", "built_in_service_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "service_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "aliased_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "service_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "overridden_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "service_id", "owned_by", "key", "is_secret", "mount_path", "enable_interpolation_in_file", "secret_manager_access_id", "value", "description", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("id", "organization_id", "scope", "service_id", "owned_by", "key", "is_secret", "value", "mount_path", "description", "enable_interpolation_in_file", "created_at") values ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("service_id", "environment_id", "overridden_id", "aliased_id", "overridden_built_in", "aliased_built_in", "built_in_service_id", "id", "organization_id", "key", "is_secret", "value", "scope", "mount_path", "description", "enable_interpolation_in_file", "secret_manager_access_id", "access_chosen_by", "access_chosen_with", "owned_by", "output_of", "created_at") values ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond');

insert into "variable" ("service_id", "environment_id", "overridden_id", "aliased_id", "overridden_built_in", "aliased_built_in", "built_in_service_id", "id", "organization_id", "key", "is_secret", "value", "scope", "mount_path", "description", "enable_interpolation_in_file", "secret_manager_access_id", "access_chosen_by", "access_chosen_with", "owned_by", "output_of", "created_at") values ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond'), ($…, now() + $ * interval '1 microsecond');

insert into "variable_secret_version" ("variable_id", "version", "organization_id", "sealed") values ($…);

insert into "variable_secret_version" ("variable_id", "version", "organization_id", "sealed") values ($…), …;

insert into "webhook" ("id", "organization_id", "kind", "target_url", "target_secret", "description", "enabled", "events", "subscribed_events", "project_names_filter", "environment_types_filter") values ($…) returning *;

insert into "webhook_attempt" ("organization_id", "webhook_id", "kind", "matched_event", "delivery_id", "number", "target_url", "ended_at", "status_code", "id", "response_body") values ($…);

insert into "webhook_delivery" ("organization_id", "webhook_id", "kind", "matched_event", "id", "body", "state", "attempts", "tries") values ($…);

insert into alert_rule_receiver (organization_id, rule_id, receiver_id) select $…, id from unnest($::uuid[]) as id on conflict do nothing;

insert into outbox (organization_id, topic, payload) select $::uuid, $…::jsonb || each from jsonb_array_elements($::jsonb) each;

rollback;

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is not null order by "api_token"."created_at", "api_token"."id";

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is null order by "api_token"."created_at", "api_token"."id";

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = any($) and "api_token"."id" = $;

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."parent_id" = $;

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name", ((select count(*) as "total" from (select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is not null) as "all")) as "page_total" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is not null order by "api_token"."created_at", "api_token"."id" limit $ offset $;

select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name", ((select count(*) as "total" from (select "api_token"."id", "api_token"."organization_id", "api_token"."name", "api_token"."description", "api_token"."scope", "api_token"."role_id", "api_token"."policy", "api_token"."expires_at", "api_token"."project_id", "api_token"."environment_id", "api_token"."created_at", "api_token"."updated_at", "api_token"."created_by", "role"."name" as "role_name", "creator"."subject" as "creator_subject", coalesce(nullif(trim(creator.first_name || ' ' || creator.last_name), ''), nullif(creator.nickname, ''), creator.email) as "creator_name" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is null) as "all")) as "page_total" from "api_token" inner join "user_account" as "creator" on "creator"."id" = "api_token"."created_by" left join "role" on "role"."id" = "api_token"."role_id" where "api_token"."organization_id" = $ and "api_token"."policy" is null order by "api_token"."created_at", "api_token"."id" limit $ offset $;

select "argo_cd"."id", "argo_cd"."url", "argo_cd"."status", "argo_cd"."last_checked_at", "argo_cd"."updated_at", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "cluster"."cloud_provider" from "argo_cd" inner join "cluster" on "cluster"."id" = "argo_cd"."cluster_id" where "argo_cd"."organization_id" = $ and true order by "argo_cd"."created_at", "argo_cd"."id";

select "attempt".*, "delivery"."body", ((select count(*) as "total" from (select "attempt".*, "delivery"."body" from "webhook_attempt" as "attempt" inner join "webhook_delivery" as "delivery" on "delivery"."id" = "attempt"."delivery_id" where "attempt"."organization_id" = $ and "attempt"."webhook_id" = $ and "attempt"."ended_at" is not null) as "all")) as "page_total" from "webhook_attempt" as "attempt" inner join "webhook_delivery" as "delivery" on "delivery"."id" = "attempt"."delivery_id" where "attempt"."organization_id" = $ and "attempt"."webhook_id" = $ and "attempt"."ended_at" is not null order by "attempt"."id" desc limit $ offset $;

select "audit_key" from "installation";

select "cluster"."runtime", "cluster"."node_id" as "nodeId" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" where "environment"."organization_id" = $ and "environment"."id" = $;

select "cluster".*, "last_work"."last_work_id", "last_work"."last_work_action", coalesce(( select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication, 'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id) from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]') as "accesses", exists ( select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig') as "has_kubeconfig" from "cluster" left join lateral (select "cluster_work"."id" as "last_work_id", "cluster_work"."action" as "last_work_action" from "cluster_work" where "cluster_work"."cluster_id" = "cluster"."id" order by "cluster_work"."number" desc limit $) as "last_work" on true where "cluster"."organization_id" = $ and "cluster"."locked_at" is not null and true order by "cluster"."created_at", "cluster"."id";

select "cluster".*, "last_work"."last_work_id", "last_work"."last_work_action", coalesce(( select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication, 'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id) from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]') as "accesses", exists ( select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig') as "has_kubeconfig" from "cluster" left join lateral (select "cluster_work"."id" as "last_work_id", "cluster_work"."action" as "last_work_action" from "cluster_work" where "cluster_work"."cluster_id" = "cluster"."id" order by "cluster_work"."number" desc limit $) as "last_work" on true where "cluster"."organization_id" = $ and true order by "cluster"."created_at", "cluster"."id";

select "cluster".*, "last_work"."last_work_id", "last_work"."last_work_action", coalesce(( select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication, 'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id) from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]') as "accesses", exists ( select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig') as "has_kubeconfig", ((select count(*) as "total" from (select "cluster".*, "last_work"."last_work_id", "last_work"."last_work_action", coalesce(( select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication, 'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id) from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]') as "accesses", exists ( select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig') as "has_kubeconfig" from "cluster" left join lateral (select "cluster_work"."id" as "last_work_id", "cluster_work"."action" as "last_work_action" from "cluster_work" where "cluster_work"."cluster_id" = "cluster"."id" order by "cluster_work"."number" desc limit $) as "last_work" on true where "cluster"."organization_id" = $ and true) as "all")) as "page_total" from "cluster" left join lateral (select "cluster_work"."id" as "last_work_id", "cluster_work"."action" as "last_work_action" from "cluster_work" where "cluster_work"."cluster_id" = "cluster"."id" order by "cluster_work"."number" desc limit $) as "last_work" on true where "cluster"."organization_id" = $ and true order by "cluster"."created_at", "cluster"."id" limit $ offset $;

select "cluster".*, "last_work"."last_work_id", "last_work"."last_work_action", coalesce(( select json_agg(json_build_object('id', a.id, 'name', a.name, 'endpoint', a.endpoint, 'authentication', a.authentication, 'created_at', a.created_at, 'updated_at', a.updated_at) order by a.created_at, a.id) from secret_manager_access a where a.cluster_id = cluster.id and a.organization_id = cluster.organization_id), '[]') as "accesses", exists ( select 1 from cluster_secret s where s.cluster_id = cluster.id and s.organization_id = cluster.organization_id and s.name = 'kubeconfig') as "has_kubeconfig", (select version from access_version where user_id = $) as "accessVersion" from "cluster" left join lateral (select "cluster_work"."id" as "last_work_id", "cluster_work"."action" as "last_work_action" from "cluster_work" where "cluster_work"."cluster_id" = "cluster"."id" order by "cluster_work"."number" desc limit $) as "last_work" on true where "cluster"."organization_id" = any($) and "cluster"."id" = $;

select "cluster_log"."at", "cluster_log"."step", "cluster_log"."message", "cluster_log"."is_error", "cluster_log"."hint", "cluster_log"."work_id", "cluster_work"."action" from "cluster_log" inner join "cluster_work" on "cluster_work"."id" = "cluster_log"."work_id" where "cluster_log"."organization_id" = $ and "cluster_log"."cluster_id" = $ and "cluster_log"."at" >= $ and "cluster_log"."at" <= $ order by "cluster_work"."number", "cluster_log"."sequence";

select "cluster_log"."at", "cluster_log"."step", "cluster_log"."message", "cluster_log"."is_error", "cluster_log"."hint", "cluster_log"."work_id", "cluster_work"."action" from "cluster_log" inner join "cluster_work" on "cluster_work"."id" = "cluster_log"."work_id" where "cluster_log"."organization_id" = $ and "cluster_log"."cluster_id" = $ order by "cluster_work"."number", "cluster_log"."sequence";

select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at" from "deployment" as "d" where "d"."organization_id" = $ and "d"."environment_id" = $ and "d"."status" <> $ order by "d"."number";

select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at" from "deployment" as "d" where "d"."organization_id" = $ and "d"."id" in (select "deployment_id" from "deployment_service" where "organization_id" = $ and "service_id" = any($)) and "d"."status" <> $ order by "d"."number";

select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at", ((select count(*) as "total" from (select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at" from "deployment" as "d" where "d"."organization_id" = $ and "d"."environment_id" = $) as "all")) as "page_total" from "deployment" as "d" where "d"."organization_id" = $ and "d"."environment_id" = $ order by "d"."number" desc limit $ offset $;

select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at", ((select count(*) as "total" from (select "d"."id", "d"."environment_id", "d"."number", "d"."action", "d"."trigger", "d"."status", "d"."outcome", "d"."cancel_requested_at", "d"."requested_by_name", "d"."origin", "d"."created_at", "d"."updated_at", "d"."started_at", "d"."ended_at" from "deployment" as "d" where "d"."organization_id" = $ and "d"."id" in (select "deployment_id" from "deployment_service" where "organization_id" = $ and "service_id" = any($))) as "all")) as "page_total" from "deployment" as "d" where "d"."organization_id" = $ and "d"."id" in (select "deployment_id" from "deployment_service" where "organization_id" = $ and "service_id" = any($)) order by "d"."number" desc limit $ offset $;

select "data_key" from "organization" where "id" = $;

select "deployment"."id" from "deployment" inner join "service" on "service"."environment_id" = "deployment"."environment_id" where "service"."organization_id" = any($) and "service"."id" = $ and "deployment"."status" in ($…) for update of "deployment";

select "deployment".*, "environment"."project_id", "environment"."mode", "environment"."name" as "environment_name", "project"."name" as "project_name" from "deployment" inner join "environment" on "environment"."id" = "deployment"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "deployment"."organization_id" = any($) and "deployment"."id" = $;

select "deployment_id", "service_id", "state", "action", "name", "kind" from "deployment_service" where "organization_id" = $ and "deployment_id" = any($);

select "destination"."argo_cd_id", "destination"."url", "destination"."name", "destination"."applications" from "argo_cd_destination" as "destination" where "destination"."organization_id" = $ and not exists (select "mapping"."url" from "argo_cd_mapping" as "mapping" where "mapping"."argo_cd_id" = "destination"."argo_cd_id" and "mapping"."url" = "destination"."url") order by "destination"."name", "destination"."url";

select "domain_key" from "organization" where "id" = $;

select "environment"."id" as "environment_id", "environment"."name" as "environment_name", "project"."id" as "project_id", "project"."name" as "project_name", coalesce(( select json_agg(json_build_object('id', s.id, 'name', s.name, 'type', s.kind) order by s.created_at, s.id) from service s where s.environment_id = environment.id and s.organization_id = environment.organization_id and s.kind = any($)), '[]') as "services" from "environment" inner join "project" on "project"."id" = "environment"."project_id" where "environment"."organization_id" = $ and "environment"."cluster_id" = $ and true order by "environment"."created_at", "environment"."id";

select "environment"."id", "environment"."created_at", "environment"."updated_at", "environment"."name", "environment"."mode", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "cluster"."cloud_provider", count(service.id) as "services", count(service.id) filter (where service.kind = any($)) as "argo" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "service" on "service"."environment_id" = "environment"."id" where "environment"."organization_id" = $ and "environment"."project_id" = $ and true group by "environment"."id", "cluster"."id" order by "environment"."created_at", "environment"."id";

select "environment"."id", count(service.id) as "services" from "environment" left join "service" on "service"."environment_id" = "environment"."id" where "environment"."organization_id" = $ and "environment"."project_id" = $ and true group by "environment"."id" order by "environment"."created_at";

select "environment".*, "cluster"."name" as "cluster_name", "cluster"."cloud_provider", "cluster"."runtime", "cluster"."locked_at" as "cluster_locked_at", "project"."name" as "project_name" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "project" on "project"."id" = "environment"."project_id" where "environment"."organization_id" = $ and "environment"."project_id" = $ and true order by "environment"."created_at", "environment"."id";

select "environment".*, "cluster"."name" as "cluster_name", "cluster"."cloud_provider", "cluster"."runtime", "cluster"."locked_at" as "cluster_locked_at", "project"."name" as "project_name", ((select count(*) as "total" from (select "environment".*, "cluster"."name" as "cluster_name", "cluster"."cloud_provider", "cluster"."runtime", "cluster"."locked_at" as "cluster_locked_at", "project"."name" as "project_name" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "project" on "project"."id" = "environment"."project_id" where "environment"."organization_id" = $ and "environment"."project_id" = $ and true) as "all")) as "page_total" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "project" on "project"."id" = "environment"."project_id" where "environment"."organization_id" = $ and "environment"."project_id" = $ and true order by "environment"."created_at", "environment"."id" limit $ offset $;

select "environment".*, "cluster"."name" as "cluster_name", "cluster"."cloud_provider", "cluster"."runtime", "cluster"."locked_at" as "cluster_locked_at", "project"."name" as "project_name", (select version from access_version where user_id = $) as "accessVersion" from "environment" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "project" on "project"."id" = "environment"."project_id" where "environment"."organization_id" = any($) and "environment"."id" = $;

select "environment_id", "service_id" from "agentic_run" where "organization_id" = $ and "workflow_id" = $ order by "created_at" desc;

select "environment_id", "service_id", "created_at" from "agentic_run" where "organization_id" = $ and "workflow_id" = $ and "call_id" = $;

select "expires_at" from "api_token" where "id" = $ for key share;

select "first_organization_id" from "installation";

select "fork_ref" from "environment" where "organization_id" = $ and "id" = $;

select "id" from "alert_receiver" where "organization_id" = $ and "id" = any($::uuid[]) order by "id" for key share;

select "id" from "alert_rule" where "organization_id" = any($) and "id" = $ for update;

select "id" from "api_token" where "organization_id" = any($) and "id" = $ for update;

select "id" from "cluster" where "organization_id" = $ and "id" = $;

select "id" from "cluster" where "organization_id" = $ limit $;

select "id" from "cluster" where "organization_id" = any($) and "id" = $ for update;

select "id" from "container_registry" where "organization_id" = any($) and "id" = $ for update;

select "id" from "credentials" where "organization_id" = any($) and "id" = $ for update;

select "id" from "database_backup" where "organization_id" = any($) and "id" = $ for update;

select "id" from "deployment_stage" where "organization_id" = $ and "environment_id" = $ order by name = $ desc, "position" desc limit $;

select "id" from "environment" where "organization_id" = $ and "id" = $ for update;

select "id" from "environment" where "organization_id" = $ and "project_id" = $ and true order by "created_at", "id";

select "id" from "environment" where "organization_id" = any($) and "id" = $ for update;

select "id" from "git_token" where "organization_id" = $ and "id" = $ for update;

select "id" from "git_token" where "organization_id" = any($) and "id" = $ for update;

select "id" from "helm_repository" where "organization_id" = any($) and "id" = $ for update;

select "id" from "mcp_server" where "organization_id" = any($) and "id" = $ for update;

select "id" from "member_invitation" where "organization_id" = $ and "id" = $ for update;

select "id" from "metadata_group" where "organization_id" = any($) and "id" = $ for update;

select "id" from "organization" where "id" = $ for no key update;

select "id" from "preview" where "organization_id" = $ and "source_id" = $ and "id" = $ for no key update;

select "id" from "project" where "organization_id" = any($) and "id" = $ for update;

select "id" from "role" where "organization_id" = $ and "built_in" = $ and "name" = $ for no key update;

select "id" from "role" where "organization_id" = any($) and "id" = $ for update;

select "id" from "service" where "organization_id" = $ and "argo_cd_id" = $;

select "id" from "service" where "organization_id" = $ and "environment_id" = $ and "kind" = $ order by "created_at", "id";

select "id" from "service" where "organization_id" = $ and "id" = any($) and "wanted" = $ and "handle" is null and not exists (select "deployment"."id" from "deployment_service" inner join "deployment" on "deployment"."id" = "deployment_service"."deployment_id" where "deployment_service"."service_id" = "service"."id" and ("deployment"."status" <> $ or ("deployment"."action" = $ and "deployment_service"."started_at" is not null)));

select "id" from "service" where "organization_id" = any($) and "id" = $ for update;

select "id" from "variable" where "organization_id" = $ and "id" = $ for share;

select "id", "at", "event_type", "target_type", "target_id", "target_name", "sub_target_type", "project_id", "project_name", "environment_id", "environment_name", "triggered_by", "origin", "user_agent", "change", "original_change", (extract(epoch from at) * 1000000)::bigint as "micros" from "audit_event" where "audit_event"."organization_id" = $ and true order by "at" desc, "id" desc limit $;

select "id", "cluster_id", "url", "token" from "argo_cd" where "organization_id" = $ and "cluster_id" = $;

select "id", "cluster_id", "url", "token" from "argo_cd" where "organization_id" = $ and "id" = $;

select "id", "environment_id", "name" from "service" where "organization_id" = $ and "environment_id" = any($);

select "id", "epoch", "read_only_since", "restored_at", "restored_from" from "installation";

select "id", "is_default" from "cluster" where "organization_id" = $ order by "is_default" desc limit $;

select "id", "mode" from "environment" where "organization_id" = $ and "project_id" = $ order by "cluster_id", "id" for update;

select "id", "name" from "cluster" where "organization_id" = $ order by "created_at", "id";

select "id", "name" from "project" where "organization_id" = $ order by "created_at", "id";

select "id", "name" from "role" where "organization_id" = $ and "built_in" = $;

select "id", "name" from (select distinct on ("target_id") "target_id" as "id", "target_name" as "name" from "audit_target" as "target" where "target"."organization_id" = $ and "target_id" is not null and true order by "target_id", "first_at" desc) as "newest" order by lower(name), "id";

select "id", "name", "cloud_provider", "credentials_id" from "cluster" where "organization_id" = $ and "credentials_id" is not null and true order by "created_at", "id";

select "id", "name", "organization_id", "cluster_id" from "secret_manager_access" where "organization_id" = any($) and "id" = $;

select "id", "name", "project_id" from "environment" where "organization_id" = $ and "cluster_id" = $ and "deleting" = $ and left(id::text, 8) = $ order by "created_at" limit $ for share;

select "id", "number" from "deployment" where "organization_id" = $ and "environment_id" = $ and "number" = $;

select "id", "number" from "deployment" where "organization_id" = $ and "environment_id" = $ and "status" <> $ order by "number" desc limit $;

select "id", "organization_id" from "service" where "kind" = $ and spec ->> 'slug' = $;

select "id", "organization_id", "cluster_id", "url", "status", "reason", "message", "last_checked_at", "reached_at", "created_at", "updated_at" from "argo_cd" where "organization_id" = $ and "cluster_id" = $;

select "id", "organization_id", "cluster_id", "url", "status", "reason", "message", "last_checked_at", "reached_at", "created_at", "updated_at" from "argo_cd" where "organization_id" = $ and "cluster_id" = $ for update;

select "id", "organization_id", "name", "cloud_provider" from "cluster" where "organization_id" = any($) and "runtime" = $ order by "created_at", "id";

select "id", "stage_id" from "service" where "organization_id" = $ and "environment_id" = $;

select "id", "stage_id", "kind", "is_skipped", "created_at", "updated_at" from "service" where "organization_id" = $ and "environment_id" = $ order by "created_at", "id";

select "id", "user_id", "credential_id", "public_key", "sign_count", "name", "rp_id", "transports", "synced", "created_at", "last_used_at" from "passkey" where "user_id" = $ order by "created_at", "id";

select "id", "user_id", "secret_hash", "expires_at" from "sign_in_link" where "id" = $;

select "id", "user_id", "secret_hash", "expires_at" from "sign_in_link" where "id" = $ for update;

select "id", ((select count(*) as "total" from (select "id" from "environment" where "organization_id" = $ and "project_id" = $ and true) as "all")) as "page_total" from "environment" where "organization_id" = $ and "project_id" = $ and true order by "created_at", "id" limit $ offset $;

select "id", ((select count(*) as "total" from (select "id" from "service" where "organization_id" = $ and "environment_id" = $ and "kind" = $) as "all")) as "page_total" from "service" where "organization_id" = $ and "environment_id" = $ and "kind" = $ order by "created_at", "id" limit $ offset $;

select "invitation".*, "organization"."name" as "organization_name", "organization"."logo_url", "role"."name" as "role_name", "role"."built_in", "inviter"."first_name", "inviter"."last_name", "inviter"."nickname", "inviter"."email" as "inviter_email" from "member_invitation" as "invitation" inner join "organization" on "organization"."id" = "invitation"."organization_id" inner join "role" on "role"."id" = "invitation"."role_id" inner join "user_account" as "inviter" on "inviter"."id" = "invitation"."invited_by" where "invitation"."id" = $;

select "invitation".*, "organization"."name" as "organization_name", "organization"."logo_url", "role"."name" as "role_name", "role"."built_in", "inviter"."first_name", "inviter"."last_name", "inviter"."nickname", "inviter"."email" as "inviter_email" from "member_invitation" as "invitation" inner join "organization" on "organization"."id" = "invitation"."organization_id" inner join "role" on "role"."id" = "invitation"."role_id" inner join "user_account" as "inviter" on "inviter"."id" = "invitation"."invited_by" where "invitation"."organization_id" = $ and "invitation"."id" = $;

select "invitation".*, "organization"."name" as "organization_name", "organization"."logo_url", "role"."name" as "role_name", "role"."built_in", "inviter"."first_name", "inviter"."last_name", "inviter"."nickname", "inviter"."email" as "inviter_email" from "member_invitation" as "invitation" inner join "organization" on "organization"."id" = "invitation"."organization_id" inner join "role" on "role"."id" = "invitation"."role_id" inner join "user_account" as "inviter" on "inviter"."id" = "invitation"."invited_by" where "invitation"."organization_id" = $ order by "invitation"."created_at", "invitation"."id";

select "invitation".*, "organization"."name" as "organization_name", "organization"."logo_url", "role"."name" as "role_name", "role"."built_in", "inviter"."first_name", "inviter"."last_name", "inviter"."nickname", "inviter"."email" as "inviter_email", ((select count(*) as "total" from (select "invitation".*, "organization"."name" as "organization_name", "organization"."logo_url", "role"."name" as "role_name", "role"."built_in", "inviter"."first_name", "inviter"."last_name", "inviter"."nickname", "inviter"."email" as "inviter_email" from "member_invitation" as "invitation" inner join "organization" on "organization"."id" = "invitation"."organization_id" inner join "role" on "role"."id" = "invitation"."role_id" inner join "user_account" as "inviter" on "inviter"."id" = "invitation"."invited_by" where "invitation"."organization_id" = $) as "all")) as "page_total" from "member_invitation" as "invitation" inner join "organization" on "organization"."id" = "invitation"."organization_id" inner join "role" on "role"."id" = "invitation"."role_id" inner join "user_account" as "inviter" on "inviter"."id" = "invitation"."invited_by" where "invitation"."organization_id" = $ order by "invitation"."created_at", "invitation"."id" limit $ offset $;

select "lines" from "failed_instance_log" where "organization_id" = $ and "service_id" = $;

select "mapping"."argo_cd_id", "mapping"."url", "destination"."name", "destination"."applications", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "cluster"."cloud_provider", "cluster"."runtime", cluster.spec ->> 'kubernetes' as "kubernetes" from "argo_cd_mapping" as "mapping" inner join "cluster" on "cluster"."id" = "mapping"."cluster_id" left join "argo_cd_destination" as "destination" on "destination"."argo_cd_id" = "mapping"."argo_cd_id" and "destination"."url" = "mapping"."url" and "destination"."organization_id" = "mapping"."organization_id" where "mapping"."organization_id" = $ and true order by "mapping"."created_at", "mapping"."url";

select "member"."user_id", "member"."organization_id", "member"."created_at", "member"."updated_at", "member"."role_id", "role"."name" as "role_name", "role"."built_in", "role"."permissions", "person"."first_name", "person"."last_name", "person"."nickname", "person"."email", "person"."picture_url", "person"."last_activity_at" from "member" inner join "user_account" as "person" on "person"."id" = "member"."user_id" inner join "role" on "role"."id" = "member"."role_id" where "member"."organization_id" = $ and "member"."user_id" = $;

select "member"."user_id", "member"."organization_id", "member"."created_at", "member"."updated_at", "member"."role_id", "role"."name" as "role_name", "role"."built_in", "role"."permissions", "person"."first_name", "person"."last_name", "person"."nickname", "person"."email", "person"."picture_url", "person"."last_activity_at" from "member" inner join "user_account" as "person" on "person"."id" = "member"."user_id" inner join "role" on "role"."id" = "member"."role_id" where "member"."organization_id" = $ and "person"."email_verified" = $ and lower(person.email) = $;

select "member"."user_id", "member"."organization_id", "member"."created_at", "member"."updated_at", "member"."role_id", "role"."name" as "role_name", "role"."built_in", "role"."permissions", "person"."first_name", "person"."last_name", "person"."nickname", "person"."email", "person"."picture_url", "person"."last_activity_at" from "member" inner join "user_account" as "person" on "person"."id" = "member"."user_id" inner join "role" on "role"."id" = "member"."role_id" where "member"."organization_id" = $ order by "member"."created_at", "member"."user_id";

select "member"."user_id", "member"."organization_id", "member"."created_at", "member"."updated_at", "member"."role_id", "role"."name" as "role_name", "role"."built_in", "role"."permissions", "person"."first_name", "person"."last_name", "person"."nickname", "person"."email", "person"."picture_url", "person"."last_activity_at", ((select count(*) as "total" from (select "member"."user_id", "member"."organization_id", "member"."created_at", "member"."updated_at", "member"."role_id", "role"."name" as "role_name", "role"."built_in", "role"."permissions", "person"."first_name", "person"."last_name", "person"."nickname", "person"."email", "person"."picture_url", "person"."last_activity_at" from "member" inner join "user_account" as "person" on "person"."id" = "member"."user_id" inner join "role" on "role"."id" = "member"."role_id" where "member"."organization_id" = $) as "all")) as "page_total" from "member" inner join "user_account" as "person" on "person"."id" = "member"."user_id" inner join "role" on "role"."id" = "member"."role_id" where "member"."organization_id" = $ order by "member"."created_at", "member"."user_id" limit $ offset $;

select "name" from "cluster" where "organization_id" = $ and spec @> $::jsonb limit $;

select "name" from "service" where "organization_id" = $ and "kind" = $ and spec -> 'mcp_server_ids' @> to_jsonb($::text) order by "created_at", "id";

select "name", count(*) over () as "total" from "environment" where "organization_id" = $ and "cluster_id" = $ order by "created_at" limit $;

select "nickname", "first_name", "last_name", "email" from "user_account" where "id" = $;

select "onboarding_use_cases", "onboarding_status" from "user_account" where "id" = $;

select "organization"."name" as "organization", "project"."name" as "project", "environment"."name" as "environment", "environment"."mode" from "environment" inner join "project" on "project"."id" = "environment"."project_id" inner join "organization" on "organization"."id" = "environment"."organization_id" where "environment"."organization_id" = $ and "environment"."id" = $;

select "organization_id" from "member" where "user_id" = $ order by "organization_id";

select "organization_id", "service_id" from "custom_domain" where "organization_id" = $ and "domain" = $;

select "preview"."id", "preview"."wanted", "preview"."environment_id", "preview"."error", "preview"."approved_commit", "preview"."approved_by", "preview"."approved_at", "pull_request"."repository", "pull_request"."state", "pull_request"."provider", "pull_request"."title", "pull_request"."author", "pull_request"."head_repository", "pull_request"."head_branch", "pull_request"."head_commit", "pull_request"."base_branch", pull_request.number::float8 as "number" from "preview" inner join "pull_request" on "pull_request"."id" = "preview"."pull_request_id" where "preview"."organization_id" = $ and "preview"."source_id" = $ and "pull_request"."is_fork" = $ and "preview"."id" = $;

select "preview"."id", "preview"."wanted", "preview"."environment_id", "preview"."error", "preview"."approved_commit", "preview"."approved_by", "preview"."approved_at", "pull_request"."repository", "pull_request"."state", "pull_request"."provider", "pull_request"."title", "pull_request"."author", "pull_request"."head_repository", "pull_request"."head_branch", "pull_request"."head_commit", "pull_request"."base_branch", pull_request.number::float8 as "number" from "preview" inner join "pull_request" on "pull_request"."id" = "preview"."pull_request_id" where "preview"."organization_id" = $ and "preview"."source_id" = $ and "pull_request"."is_fork" = $ and "preview"."wanted" = $ and "pull_request"."state" = $ order by "preview"."created_at" desc, "preview"."id";

select "preview"."id", "preview"."wanted", "preview"."environment_id", "preview"."error", "preview"."approved_commit", "preview"."approved_by", "preview"."approved_at", "pull_request"."repository", "pull_request"."state", "pull_request"."provider", "pull_request"."title", "pull_request"."author", "pull_request"."head_repository", "pull_request"."head_branch", "pull_request"."head_commit", "pull_request"."base_branch", pull_request.number::float8 as "number", ((select count(*) as "total" from (select "preview"."id", "preview"."wanted", "preview"."environment_id", "preview"."error", "preview"."approved_commit", "preview"."approved_by", "preview"."approved_at", "pull_request"."repository", "pull_request"."state", "pull_request"."provider", "pull_request"."title", "pull_request"."author", "pull_request"."head_repository", "pull_request"."head_branch", "pull_request"."head_commit", "pull_request"."base_branch", pull_request.number::float8 as "number" from "preview" inner join "pull_request" on "pull_request"."id" = "preview"."pull_request_id" where "preview"."organization_id" = $ and "preview"."source_id" = $ and "pull_request"."is_fork" = $ and "preview"."wanted" = $ and "pull_request"."state" = $) as "all")) as "page_total" from "preview" inner join "pull_request" on "pull_request"."id" = "preview"."pull_request_id" where "preview"."organization_id" = $ and "preview"."source_id" = $ and "pull_request"."is_fork" = $ and "preview"."wanted" = $ and "pull_request"."state" = $ order by "preview"."created_at" desc, "preview"."id" limit $ offset $;

select "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name", "service"."id" as "service_id", "service"."name" as "service_name", "variable"."scope", "variable"."key", "variable"."value" from "variable" left join "service" on "service"."id" = "variable"."service_id" inner join "environment" on environment.organization_id = variable.organization_id and ( environment.id = coalesce(variable.environment_id, service.environment_id) or environment.project_id = variable.project_id) inner join "project" on "project"."id" = "environment"."project_id" where "variable"."organization_id" = $ and "variable"."secret_manager_access_id" = $ and true order by "variable"."created_at", "variable"."id", "environment"."created_at", "environment"."id";

select "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name", "service"."id" as "service_id", "service"."name" as "service_name", "variable"."scope", "variable"."key", "variable"."value", ((select count(*) as "total" from (select "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name", "service"."id" as "service_id", "service"."name" as "service_name", "variable"."scope", "variable"."key", "variable"."value" from "variable" left join "service" on "service"."id" = "variable"."service_id" inner join "environment" on environment.organization_id = variable.organization_id and ( environment.id = coalesce(variable.environment_id, service.environment_id) or environment.project_id = variable.project_id) inner join "project" on "project"."id" = "environment"."project_id" where "variable"."organization_id" = $ and "variable"."secret_manager_access_id" = $ and true) as "all")) as "page_total" from "variable" left join "service" on "service"."id" = "variable"."service_id" inner join "environment" on environment.organization_id = variable.organization_id and ( environment.id = coalesce(variable.environment_id, service.environment_id) or environment.project_id = variable.project_id) inner join "project" on "project"."id" = "environment"."project_id" where "variable"."organization_id" = $ and "variable"."secret_manager_access_id" = $ and true order by "variable"."created_at", "variable"."id", "environment"."created_at", "environment"."id" limit $ offset $;

select "project"."id" as "project_id", "project"."name" as "project_name", "project"."created_at" as "project_created_at" from "project" where "organization_id" = $ and "id" = $;

select "project"."id" as "project_id", "project"."name" as "project_name", "project"."created_at" as "project_created_at", "environment"."id" as "environment_id", "environment"."name" as "environment_name", "environment"."created_at" as "environment_created_at", "service"."id" as "service_id", "service"."name" as "service_name", "service"."kind" as "service_kind", "service"."created_at" as "service_created_at", service.spec -> 'ports' as "ports", service.spec -> 'access' as "access", service.spec ->> 'type' as "type" from "environment" inner join "project" on "project"."id" = "environment"."project_id" left join "service" on "service"."environment_id" = "environment"."id" where "environment"."organization_id" = $ and "environment"."id" = $ order by "service"."created_at", "service"."id";

select "project"."id", count(distinct environment.id) as "environments", count(service.id) as "services" from "project" left join "environment" on "environment"."project_id" = "project"."id" and true left join "service" on "service"."environment_id" = "environment"."id" where "project"."organization_id" = $ and true group by "project"."id" order by "project"."created_at";

select "r".*, "c"."runtime", case when s.id is not null then json_strip_nulls(json_build_object( 'id', s.id, 'name', s.name, 'description', coalesce(s.description, ''), 'icon_uri', s.icon_uri, 'service_type', s.kind, 'project_id', p.id, 'project_name', p.name, 'environment_id', e.id, 'environment_name', e.name, 'cluster_id', e.cluster_id, 'job_type', case when "s"."kind" = any($) then case when "s"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end)) end as "service", "e"."id" as "environment_id", "e"."mode", "c"."id" as "on_cluster_id", coalesce(e.project_id, r.target_project_id) as "project_id", array(select a.receiver_id from alert_rule_receiver a where a.rule_id = r.id order by a.receiver_id) as "receiver_ids", (select min(i.since) from alert_incident i where i.rule_id = r.id) as "starts_at", exists (select from alert_incident i where i.rule_id = r.id and i.fired_at is not null) as "fires", (exists (select from alert_message m where m.rule_id = r.id and m.status <> 'ENDED') or exists (select from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], "r"."severity") >= coalesce(array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], upper(btrim("v"."severity"))), 0) and not a.is_current)) as "sends", exists (select from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], "r"."severity") >= coalesce(array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], upper(btrim("v"."severity"))), 0)) as "has_receiver", (select v.name || ': ' || a.error from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and a.error is not null order by v.name, v.id limit 1) as "delivery_error" from "alert_rule" as "r" left join "service" as "s" on "s"."id" = "r"."target_id" and "s"."organization_id" = "r"."organization_id" left join "environment" as "e" on "e"."id" = coalesce(s.environment_id, r.target_id) and "e"."organization_id" = "r"."organization_id" left join "cluster" as "c" on "c"."id" = coalesce(e.cluster_id, r.target_id) and "c"."organization_id" = "r"."organization_id" left join "project" as "p" on "p"."id" = "e"."project_id" where "r"."organization_id" = $ order by "r"."created_at", "r"."id";

select "r".*, "c"."runtime", case when s.id is not null then json_strip_nulls(json_build_object( 'id', s.id, 'name', s.name, 'description', coalesce(s.description, ''), 'icon_uri', s.icon_uri, 'service_type', s.kind, 'project_id', p.id, 'project_name', p.name, 'environment_id', e.id, 'environment_name', e.name, 'cluster_id', e.cluster_id, 'job_type', case when "s"."kind" = any($) then case when "s"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end)) end as "service", "e"."id" as "environment_id", "e"."mode", "c"."id" as "on_cluster_id", coalesce(e.project_id, r.target_project_id) as "project_id", array(select a.receiver_id from alert_rule_receiver a where a.rule_id = r.id order by a.receiver_id) as "receiver_ids", (select min(i.since) from alert_incident i where i.rule_id = r.id) as "starts_at", exists (select from alert_incident i where i.rule_id = r.id and i.fired_at is not null) as "fires", (exists (select from alert_message m where m.rule_id = r.id and m.status <> 'ENDED') or exists (select from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], "r"."severity") >= coalesce(array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], upper(btrim("v"."severity"))), 0) and not a.is_current)) as "sends", exists (select from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], "r"."severity") >= coalesce(array_position(array['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], upper(btrim("v"."severity"))), 0)) as "has_receiver", (select v.name || ': ' || a.error from alert_rule_receiver a join alert_receiver v on v.id = a.receiver_id where a.rule_id = r.id and a.error is not null order by v.name, v.id limit 1) as "delivery_error" from "alert_rule" as "r" left join "service" as "s" on "s"."id" = "r"."target_id" and "s"."organization_id" = "r"."organization_id" left join "environment" as "e" on "e"."id" = coalesce(s.environment_id, r.target_id) and "e"."organization_id" = "r"."organization_id" left join "cluster" as "c" on "c"."id" = coalesce(e.cluster_id, r.target_id) and "c"."organization_id" = "r"."organization_id" left join "project" as "p" on "p"."id" = "e"."project_id" where "r"."organization_id" = any($) and "r"."id" = $;

select "registry_webhook".*, "container_registry"."url" from "registry_webhook" inner join "container_registry" on "container_registry"."id" = "registry_webhook"."registry_id" and "container_registry"."organization_id" = "registry_webhook"."organization_id" where "registry_webhook"."id" = $;

select "scope", "project_id", "environment_id", "service_id" from "variable" where "organization_id" = any($::uuid[]) and "id" = $;

select "service"."id" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" where "service"."organization_id" = $ and "service"."container_registry_id" = $ and "service"."kind" = $ and true order by "service"."created_at", "service"."id";

select "service"."id", "release"."snapshot", "release"."deployment_id" from "service" inner join "release" on "release"."id" = "service"."release_id" where "service"."organization_id" = $ and "service"."id" = any($);

select "service"."id", "service"."kind", "service"."name", "service"."icon_uri", "service"."spec", "service"."advanced_settings", "service"."is_skipped", "service"."requires", "service"."details", "service"."version", "service"."wanted", "service"."release_id", "service"."deleting", "service"."observed", "environment"."version" as "environment_version", "environment"."fork_ref", "environment"."fork_commit", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."capabilities" as "cluster_capabilities", "project"."version" as "project_version", "stage"."id" as "stage_id", "stage"."name" as "stage_name", "stage"."position" as "stage_position", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "deployment_stage" as "stage" on "stage"."id" = "service"."stage_id" where "service"."organization_id" = $ and "service"."environment_id" = $ and "service"."id" = any($) order by "service"."created_at", "service"."id";

select "service"."id", "service"."kind", "service"."name", "service"."icon_uri", "service"."spec", "service"."advanced_settings", "service"."is_skipped", "service"."requires", "service"."details", "service"."version", "service"."wanted", "service"."release_id", "service"."deleting", "service"."observed", "environment"."version" as "environment_version", "environment"."fork_ref", "environment"."fork_commit", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."capabilities" as "cluster_capabilities", "project"."version" as "project_version", "stage"."id" as "stage_id", "stage"."name" as "stage_name", "stage"."position" as "stage_position", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" inner join "deployment_stage" as "stage" on "stage"."id" = "service"."stage_id" where "service"."organization_id" = $ and "service"."environment_id" = $ order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."argo_cd_id" = (select "argo_cd"."id" from "argo_cd" where "argo_cd"."organization_id" = $ and "argo_cd"."cluster_id" = $) order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."container_registry_id" = $ order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."helm_repository_id" = $ order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and ("service"."git_token_id" = $ or "service"."values_git_token_id" = $) and "service"."kind" in ($…) order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true order by "service"."created_at", "service"."id";

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type", ((select count(*) as "total" from (select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."container_registry_id" = $) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."container_registry_id" = $ order by "service"."created_at", "service"."id" limit $ offset $;

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type", ((select count(*) as "total" from (select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."helm_repository_id" = $) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and "service"."helm_repository_id" = $ order by "service"."created_at", "service"."id" limit $ offset $;

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type", ((select count(*) as "total" from (select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and ("service"."git_token_id" = $ or "service"."values_git_token_id" = $) and "service"."kind" in ($…)) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true and ("service"."git_token_id" = $ or "service"."values_git_token_id" = $) and "service"."kind" in ($…) order by "service"."created_at", "service"."id" limit $ offset $;

select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type", ((select count(*) as "total" from (select "service"."id", "service"."name", "service"."description", "service"."icon_uri", "service"."kind", "environment"."project_id", "project"."name" as "project_name", "service"."environment_id", "environment"."name" as "environment_name", "environment"."cluster_id", case when "service"."kind" = any($) then case when "service"."spec" -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end end as "job_type" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "service"."organization_id" = $ and true order by "service"."created_at", "service"."id" limit $ offset $;

select "service"."id", "service"."wanted", "service"."handle", "service"."dirty", "release"."image", "release"."build_key", "release"."resolution", "release"."id" as "release_id" from "service" left join "release" on "release"."id" = "service"."release_id" where "service"."organization_id" = $ and "service"."id" = any($);

select "service"."name", "service"."kind", "step"."name" as "step", "step"."status", "step"."started_at", "step"."ended_at" from "deployment_step" as "step" inner join "deployment_service" as "service" on "service"."deployment_id" = "step"."deployment_id" and "service"."service_id" = "step"."service_id" where "step"."organization_id" = $ and "step"."deployment_id" = $ and "step"."name" in ($…) order by "step"."started_at";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" inner join "database_link" on "database_link"."application_id" = "service"."id" where "service"."organization_id" = $ and "database_link"."database_id" = $ order by "database_link"."created_at", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."argo_cd_id" = $ and service.spec ->> 'destination' = $ order by "service"."created_at", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."argo_cd_id" = $ order by "service"."created_at", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $ and "service"."kind" = $ order by "service"."created_at", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $ order by "service"."created_at", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."kind" = $ and "service"."deleting" = $ and "environment"."deleting" = $ and "environment"."fork_ref" is null and coalesce((service.spec ->> $)::boolean, false) order by "service"."environment_id", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."kind" = $ and "service"."deleting" = $ and "environment"."deleting" = $ and coalesce((service.spec ->> $)::boolean, false) order by "service"."environment_id", "service"."id";

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata", ((select count(*) as "total" from (select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" inner join "database_link" on "database_link"."application_id" = "service"."id" where "service"."organization_id" = $ and "database_link"."database_id" = $) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" inner join "database_link" on "database_link"."application_id" = "service"."id" where "service"."organization_id" = $ and "database_link"."database_id" = $ order by "database_link"."created_at", "service"."id" limit $ offset $;

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata", ((select count(*) as "total" from (select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $ and "service"."kind" = $) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $ and "service"."kind" = $ order by "service"."created_at", "service"."id" limit $ offset $;

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata", ((select count(*) as "total" from (select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $) as "all")) as "page_total" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = $ and "service"."environment_id" = $ order by "service"."created_at", "service"."id" limit $ offset $;

select "service".*, "environment"."name" as "environment_name", "environment"."mode" as "environment_mode", "environment"."cluster_id", "environment"."project_id", "environment"."deleting" as "environment_deleting", "project"."name" as "project_name", "cluster"."name" as "cluster_name", "cluster"."runtime" as "cluster_runtime", "cluster"."node_id" as "cluster_node_id", "cluster"."locked_at" as "cluster_locked_at", "release"."resolution" as "release_resolution", "release"."created_at" as "released_at", "git_token"."name" as "git_token_name", "values_token"."name" as "values_git_token_name", "helm_repository"."name" as "helm_repository_name", "helm_repository"."url" as "helm_repository_url", "registry"."name" as "registry_name", "registry"."url" as "registry_url", "registry"."kind" as "registry_kind", (select jsonb_agg(jsonb_build_object('id', metadata_group.id, 'kind', metadata_group.kind, 'name', metadata_group.name, 'entries', metadata_group.entries, 'scopes', metadata_group.scopes, 'created_at', metadata_group.created_at, 'updated_at', metadata_group.updated_at)) from metadata_group where metadata_group.organization_id = service.organization_id and metadata_group.id = any(array(select jsonb_array_elements_text((coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)))::uuid))) as "metadata", (select version from access_version where user_id = $) as "accessVersion" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" left join "release" on "release"."id" = "service"."release_id" left join "git_token" on "git_token"."id" = "service"."git_token_id" left join "git_token" as "values_token" on "values_token"."id" = "service"."values_git_token_id" left join "helm_repository" on "helm_repository"."id" = "service"."helm_repository_id" left join "container_registry" as "registry" on "registry"."id" = "service"."container_registry_id" where "service"."organization_id" = any($) and "service"."id" = $;

select "service_id", "domain", "generate_certificate", "proof_state" from "custom_domain" where "organization_id" = $ and "service_id" = any($) order by "created_at", "id";

select "stage".* from "service" inner join "deployment_stage" as "stage" on "stage"."id" = "service"."stage_id" where "service"."organization_id" = $ and "service"."id" = $;

select "stage".*, "environment"."project_id", "environment"."mode", "environment"."name" as "environment_name", "environment"."deleting", "project"."name" as "project_name" from "deployment_stage" as "stage" inner join "environment" on "environment"."id" = "stage"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" where "stage"."organization_id" = any($) and "stage"."id" = $;

select "subject" from "user_account" where "id" = $;

select "url", "cluster_id" from "argo_cd_mapping" where "organization_id" = $ and "argo_cd_id" = $ and "url" = $;

select "user_id", "name", "email", "password_hash", "password_salt", "memory_kib", "passes" from "sign_in" where "user_id" = $;

select "user_id", "name", "email", "password_hash", "password_salt", "memory_kib", "passes" from "sign_in" where "user_id" = $ for update;

select "user_id", "name", "email", "password_hash", "password_salt", "memory_kib", "passes" from "sign_in" where lower(name collate "C") = $;

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and "variable"."project_id" = $ and "variable"."id" in ( with recursive chain (id, source_id) as ( select id, coalesce(overridden_id, aliased_id) from variable where id = $ union select v.id, coalesce(v.overridden_id, v.aliased_id) from variable v join chain on v.id = chain.source_id ) select id from chain) order by "variable"."created_at", "variable"."id";

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and "variable"."project_id" = $ order by "variable"."created_at", "variable"."id";

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and ("variable"."project_id" = $ or "variable"."environment_id" = $ or "variable"."service_id" = any($::uuid[])) and "variable"."id" in ( with recursive chain (id, source_id) as ( select id, coalesce(overridden_id, aliased_id) from variable where id = $ union select v.id, coalesce(v.overridden_id, v.aliased_id) from variable v join chain on v.id = chain.source_id ) select id from chain) order by "variable"."created_at", "variable"."id";

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and ("variable"."project_id" = $ or "variable"."environment_id" = $ or "variable"."service_id" = any($::uuid[])) order by "variable"."created_at", "variable"."id";

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and ("variable"."project_id" = $ or "variable"."environment_id" = $) and "variable"."id" in ( with recursive chain (id, source_id) as ( select id, coalesce(overridden_id, aliased_id) from variable where id = $ union select v.id, coalesce(v.overridden_id, v.aliased_id) from variable v join chain on v.id = chain.source_id ) select id from chain) order by "variable"."created_at", "variable"."id";

select "variable".*, "service"."name" as "service_name", "service"."kind" as "service_kind" from "variable" left join "service" on "service"."id" = "variable"."service_id" where "variable"."organization_id" = $ and ("variable"."project_id" = $ or "variable"."environment_id" = $) order by "variable"."created_at", "variable"."id";

select "variable_id", "version", "sealed" from "variable_secret_version" where "organization_id" = $ and (variable_id, version) in (select * from unnest($::uuid[], $::int[]));

select "x"."id", "x"."event", "x"."deployment_id", "x"."scheduled_at", "x"."attempts", "x"."exit_code", "x"."signal", "x"."reason", "x"."error", "x"."created_at", "x"."started_at", "x"."environment_id", "d"."number", case when x.state = 'RUNNING' and x.scheduled_at is null and coalesce(d.status, 'ENDED') = 'ENDED' then 'CANCELED' else x.state end as "state", coalesce(x.ended_at, case when x.scheduled_at is null then d.ended_at end) as "ended_at" from "job_execution" as "x" left join "deployment" as "d" on "d"."id" = "x"."deployment_id" where "x"."organization_id" = $ and "x"."service_id" = $ and "x"."discarded" = $ and "x"."id" = $ order by "x"."created_at" desc, "x"."id";

select "x"."id", "x"."event", "x"."deployment_id", "x"."scheduled_at", "x"."attempts", "x"."exit_code", "x"."signal", "x"."reason", "x"."error", "x"."created_at", "x"."started_at", "x"."environment_id", "d"."number", case when x.state = 'RUNNING' and x.scheduled_at is null and coalesce(d.status, 'ENDED') = 'ENDED' then 'CANCELED' else x.state end as "state", coalesce(x.ended_at, case when x.scheduled_at is null then d.ended_at end) as "ended_at" from "job_execution" as "x" left join "deployment" as "d" on "d"."id" = "x"."deployment_id" where "x"."organization_id" = $ and "x"."service_id" = $ and "x"."discarded" = $ order by "x"."created_at" desc, "x"."id" limit $;

select "x"."id", "x"."event", "x"."deployment_id", "x"."scheduled_at", "x"."attempts", "x"."exit_code", "x"."signal", "x"."reason", "x"."error", "x"."created_at", "x"."started_at", "x"."environment_id", "d"."number", case when x.state = 'RUNNING' and x.scheduled_at is null and coalesce(d.status, 'ENDED') = 'ENDED' then 'CANCELED' else x.state end as "state", coalesce(x.ended_at, case when x.scheduled_at is null then d.ended_at end) as "ended_at", ((select count(*) as "total" from (select "x"."id", "x"."event", "x"."deployment_id", "x"."scheduled_at", "x"."attempts", "x"."exit_code", "x"."signal", "x"."reason", "x"."error", "x"."created_at", "x"."started_at", "x"."environment_id", "d"."number", case when x.state = 'RUNNING' and x.scheduled_at is null and coalesce(d.status, 'ENDED') = 'ENDED' then 'CANCELED' else x.state end as "state", coalesce(x.ended_at, case when x.scheduled_at is null then d.ended_at end) as "ended_at" from "job_execution" as "x" left join "deployment" as "d" on "d"."id" = "x"."deployment_id" where "x"."organization_id" = $ and "x"."service_id" = $ and "x"."discarded" = $) as "all")) as "page_total" from "job_execution" as "x" left join "deployment" as "d" on "d"."id" = "x"."deployment_id" where "x"."organization_id" = $ and "x"."service_id" = $ and "x"."discarded" = $ order by "x"."created_at" desc, "x"."id" limit $ offset $;

select (select count(*) from member where organization_id = $ and role_id = $) as members, (select count(*) from api_token where organization_id = $ and role_id = $) as tokens, (select count(*) from member_invitation where organization_id = $ and role_id = $) as invitations, (select count(*) from enterprise_group where organization_id = $ and role_id = $) + (select count(*) from enterprise_connection where organization_id = $ and default_role_id = $) as groups;

select (select count(*) from service where service.organization_id = metadata_group.organization_id and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? metadata_group.id::text) + (select count(*) from cluster where cluster.organization_id = metadata_group.organization_id and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', metadata_group.id::text))) as "uses" from "metadata_group" where "organization_id" = $ and "id" = $;

select * from "alert_receiver" where "organization_id" = $ order by "created_at", "id";

select * from "alert_receiver" where "organization_id" = any($) and "id" = $;

select * from "alert_receiver" where "organization_id" = any($) and "id" = $ for update;

select * from "billing_info" where "organization_id" = $;

select * from "build_report" where "id" = $ and "expires_at" > now();

select * from "cluster_work" where "organization_id" = $ and "cluster_id" = $ and (("created_at" >= $ and "created_at" <= $) or ("ended_at" >= $ and "ended_at" <= $)) order by "number";

select * from "container_registry" where "organization_id" = $ and "id" = $ for key share;

select * from "credentials" where "organization_id" = $ and "cloud_provider" = $ order by "created_at", "id";

select * from "credentials" where "organization_id" = $ order by "created_at", "id";

select * from "credentials" where "organization_id" = any($) and "id" = $;

select * from "custom_domain" where "organization_id" = $ and "service_id" = $ and "id" = $;

select * from "custom_domain" where "organization_id" = $ and "service_id" = $ order by "created_at", "id";

select * from "database_backup" where "organization_id" = $ order by "created_at" desc, "id";

select * from "database_backup" where "organization_id" = any($) and "id" = $;

select * from "database_restore" where "organization_id" = $ and "database_id" = $ and "id" = $;

select * from "deployment" where "organization_id" = $ and "environment_id" = $ and "status" <> $ order by "number";

select * from "deployment_restriction" where "organization_id" = $ and "service_id" = $ and "id" = $;

select * from "deployment_restriction" where "organization_id" = $ and "service_id" = $ order by "created_at", "id";

select * from "deployment_restriction" where "organization_id" = $ and "service_id" = any($) order by "created_at", "id";

select * from "deployment_service" where "organization_id" = $ and "deployment_id" = any($) and "service_id" = any($) order by "stage_position", "name";

select * from "deployment_service" where "organization_id" = $ and "deployment_id" = any($) order by "stage_position", "name";

select * from "deployment_stage" where "organization_id" = $ and "environment_id" = $ order by "position";

select * from "environment" where "organization_id" = $ and true order by "created_at", "id";

select * from "environment_deployment_rule" where "organization_id" = $ and "environment_id" = $;

select * from "installation";

select * from "mcp_server" where "organization_id" = $ order by "created_at", "id";

select * from "mcp_server" where "organization_id" = any($) and "id" = $;

select * from "metadata_group" where "organization_id" = any($) and "kind" = $ and "id" = $;

select * from "project_deployment_rule" where "organization_id" = $ and "project_id" = $ and "id" = $ order by "position";

select * from "project_deployment_rule" where "organization_id" = $ and "project_id" = $ order by "position";

select * from "registry_webhook" where "organization_id" = $ and "registry_id" = $;

select * from "role" where "organization_id" = $ and "built_in" = $ and "name" = $;

select * from "role" where "organization_id" = $ and "built_in" = $ order by "built_in" desc, case when built_in then array_position($::text[], name) end, "created_at", "id";

select * from "role" where "organization_id" = $ order by "built_in" desc, case when built_in then array_position($::text[], name) end, "created_at", "id";

select * from "role" where "organization_id" = any($) and "id" = $;

select * from "secret_manager_access" where "organization_id" = $ and "id" = $;

select * from "sign_up" where "user_id" = $;

select * from "terraform_plan" where "organization_id" = $ and "service_id" = $ order by "created_at" desc limit $;

select * from "terraform_resource" where "organization_id" = $ and "service_id" = $ order by "address";

select * from "user_account" where "id" = $;

select * from "user_account" where "id" = $ for no key update;

select * from "webhook" where "organization_id" = $ order by "created_at", "id";

select * from "webhook" where "organization_id" = any($) and "id" = $;

select * from "webhook" where "organization_id" = any($) and "id" = $ for no key update;

select * from "webhook_delivery" where "organization_id" = $ and "webhook_id" = $ and "id" = (select "delivery_id" from "webhook_attempt" where "organization_id" = $ and "id" = $) for update;

select * from ((select "id" as "item_id", "name" as "item_name", 'CLUSTER' as "item_type", 0 as "rank", "created_at", "id" as "cluster_id", "name" as "cluster_name", null as "project_id", null as "project_name", null as "environment_id", null as "environment_name" from "cluster" where "organization_id" = $ and true and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', $::text))) union all (select "service"."id" as "item_id", "service"."name" as "item_name", case when service.kind <> all($) then service.kind when service.spec -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end as "item_type", 1 as "rank", "service"."created_at", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" where "service"."organization_id" = $ and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? $::text and true)) as "item" order by "rank", "created_at", "item_id";

select *, ((select count(*) as "total" from (select * from "alert_receiver" where "organization_id" = $) as "all")) as "page_total" from "alert_receiver" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "credentials" where "organization_id" = $ and "cloud_provider" = $) as "all")) as "page_total" from "credentials" where "organization_id" = $ and "cloud_provider" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "custom_domain" where "organization_id" = $ and "service_id" = $) as "all")) as "page_total" from "custom_domain" where "organization_id" = $ and "service_id" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "database_backup" where "organization_id" = $ and "database_id" = $) as "all")) as "page_total" from "database_backup" where "organization_id" = $ and "database_id" = $ order by "created_at" desc, "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "database_backup" where "organization_id" = $) as "all")) as "page_total" from "database_backup" where "organization_id" = $ order by "created_at" desc, "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "deployment_restriction" where "organization_id" = $ and "service_id" = $) as "all")) as "page_total" from "deployment_restriction" where "organization_id" = $ and "service_id" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "environment" where "organization_id" = $ and true) as "all")) as "page_total" from "environment" where "organization_id" = $ and true order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "mcp_server" where "organization_id" = $) as "all")) as "page_total" from "mcp_server" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "project_deployment_rule" where "organization_id" = $ and "project_id" = $) as "all")) as "page_total" from "project_deployment_rule" where "organization_id" = $ and "project_id" = $ order by "position" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "role" where "organization_id" = $ and "built_in" = $) as "all")) as "page_total" from "role" where "organization_id" = $ and "built_in" = $ order by "built_in" desc, case when built_in then array_position($::text[], name) end, "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "role" where "organization_id" = $) as "all")) as "page_total" from "role" where "organization_id" = $ order by "built_in" desc, case when built_in then array_position($::text[], name) end, "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from "webhook" where "organization_id" = $) as "all")) as "page_total" from "webhook" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, ((select count(*) as "total" from (select * from ((select "id" as "item_id", "name" as "item_name", 'CLUSTER' as "item_type", 0 as "rank", "created_at", "id" as "cluster_id", "name" as "cluster_name", null as "project_id", null as "project_name", null as "environment_id", null as "environment_name" from "cluster" where "organization_id" = $ and true and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', $::text))) union all (select "service"."id" as "item_id", "service"."name" as "item_name", case when service.kind <> all($) then service.kind when service.spec -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end as "item_type", 1 as "rank", "service"."created_at", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" where "service"."organization_id" = $ and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? $::text and true)) as "item") as "all")) as "page_total" from ((select "id" as "item_id", "name" as "item_name", 'CLUSTER' as "item_type", 0 as "rank", "created_at", "id" as "cluster_id", "name" as "cluster_name", null as "project_id", null as "project_name", null as "environment_id", null as "environment_name" from "cluster" where "organization_id" = $ and true and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', $::text))) union all (select "service"."id" as "item_id", "service"."name" as "item_name", case when service.kind <> all($) then service.kind when service.spec -> 'schedule' -> 'cronjob' is not null then 'CRON' else 'LIFECYCLE' end as "item_type", 1 as "rank", "service"."created_at", "cluster"."id" as "cluster_id", "cluster"."name" as "cluster_name", "project"."id" as "project_id", "project"."name" as "project_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name" from "service" inner join "environment" on "environment"."id" = "service"."environment_id" inner join "project" on "project"."id" = "environment"."project_id" inner join "cluster" on "cluster"."id" = "environment"."cluster_id" where "service"."organization_id" = $ and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? $::text and true)) as "item" order by "rank", "created_at", "item_id" limit $ offset $;

select *, (select count(*) from environment where environment.project_id = project.id and environment.organization_id = project.organization_id) as "environments" from "project" where "organization_id" = $ and true order by "created_at", "id";

select *, (select count(*) from environment where environment.project_id = project.id and environment.organization_id = project.organization_id) as "environments", ((select count(*) as "total" from (select *, (select count(*) from environment where environment.project_id = project.id and environment.organization_id = project.organization_id) as "environments" from "project" where "organization_id" = $ and true) as "all")) as "page_total" from "project" where "organization_id" = $ and true order by "created_at", "id" limit $ offset $;

select *, (select count(*) from environment where environment.project_id = project.id and environment.organization_id = project.organization_id) as "environments", (select version from access_version where user_id = $) as "accessVersion" from "project" where "organization_id" = any($) and "id" = $;

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = $ order by "created_at", "id";

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = any($) and "id" = $;

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = any($) and ("expired_at" is null or "expired_at" > now()) and "type" = $ order by "created_at", "id" limit $;

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = any($) and ("expired_at" is null or "expired_at" > now()) order by "created_at", "id";

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services", ((select count(*) as "total" from (select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = $) as "all")) as "page_total" from "git_token" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services", ((select count(*) as "total" from (select *, (select count(*) from service where (service.git_token_id = git_token.id or service.values_git_token_id = git_token.id) and service.organization_id = git_token.organization_id and service.kind = any($)) as "services" from "git_token" where "organization_id" = any($) and ("expired_at" is null or "expired_at" > now())) as "all")) as "page_total" from "git_token" where "organization_id" = any($) and ("expired_at" is null or "expired_at" > now()) order by "created_at", "id" limit $ offset $;

select *, (select count(*) from service where service.container_registry_id = container_registry.id and service.organization_id = container_registry.organization_id) as "services", (select json_build_object('id', c.id, 'name', c.name) from cluster c where c.container_registry_id = container_registry.id and c.organization_id = container_registry.organization_id order by c.created_at, c.id limit 1) as "cluster" from "container_registry" where "organization_id" = $ order by "created_at", "id";

select *, (select count(*) from service where service.container_registry_id = container_registry.id and service.organization_id = container_registry.organization_id) as "services", (select json_build_object('id', c.id, 'name', c.name) from cluster c where c.container_registry_id = container_registry.id and c.organization_id = container_registry.organization_id order by c.created_at, c.id limit 1) as "cluster" from "container_registry" where "organization_id" = any($) and "id" = $;

select *, (select count(*) from service where service.container_registry_id = container_registry.id and service.organization_id = container_registry.organization_id) as "services", (select json_build_object('id', c.id, 'name', c.name) from cluster c where c.container_registry_id = container_registry.id and c.organization_id = container_registry.organization_id order by c.created_at, c.id limit 1) as "cluster", ((select count(*) as "total" from (select *, (select count(*) from service where service.container_registry_id = container_registry.id and service.organization_id = container_registry.organization_id) as "services", (select json_build_object('id', c.id, 'name', c.name) from cluster c where c.container_registry_id = container_registry.id and c.organization_id = container_registry.organization_id order by c.created_at, c.id limit 1) as "cluster" from "container_registry" where "organization_id" = $) as "all")) as "page_total" from "container_registry" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, (select count(*) from service where service.helm_repository_id = helm_repository.id and service.organization_id = helm_repository.organization_id) as "services" from "helm_repository" where "organization_id" = $ order by "created_at", "id";

select *, (select count(*) from service where service.helm_repository_id = helm_repository.id and service.organization_id = helm_repository.organization_id) as "services" from "helm_repository" where "organization_id" = any($) and "id" = $;

select *, (select count(*) from service where service.helm_repository_id = helm_repository.id and service.organization_id = helm_repository.organization_id) as "services", ((select count(*) as "total" from (select *, (select count(*) from service where service.helm_repository_id = helm_repository.id and service.organization_id = helm_repository.organization_id) as "services" from "helm_repository" where "organization_id" = $) as "all")) as "page_total" from "helm_repository" where "organization_id" = $ order by "created_at", "id" limit $ offset $;

select *, (select count(*) from service where service.organization_id = metadata_group.organization_id and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? metadata_group.id::text) + (select count(*) from cluster where cluster.organization_id = metadata_group.organization_id and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', metadata_group.id::text))) as "uses" from "metadata_group" where "organization_id" = $ and "kind" = $ order by "created_at", "id";

select *, (select count(*) from service where service.organization_id = metadata_group.organization_id and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? metadata_group.id::text) + (select count(*) from cluster where cluster.organization_id = metadata_group.organization_id and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', metadata_group.id::text))) as "uses", ((select count(*) as "total" from (select *, (select count(*) from service where service.organization_id = metadata_group.organization_id and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? metadata_group.id::text) + (select count(*) from cluster where cluster.organization_id = metadata_group.organization_id and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', metadata_group.id::text))) as "uses" from "metadata_group" where "organization_id" = $ and "kind" = $) as "all")) as "page_total" from "metadata_group" where "organization_id" = $ and "kind" = $ order by "created_at", "id" limit $ offset $;

select *, (select member.user_id from member join role on role.id = member.role_id where member.organization_id = organization.id and role.built_in and role.name = 'owner' order by member.created_at, member.user_id limit 1) as "owner" from "organization" where "id" = $;

select *, (select member.user_id from member join role on role.id = member.role_id where member.organization_id = organization.id and role.built_in and role.name = 'owner' order by member.created_at, member.user_id limit 1) as "owner" from "organization" where "id" = any($) order by "created_at", "id";

select *, (select member.user_id from member join role on role.id = member.role_id where member.organization_id = organization.id and role.built_in and role.name = 'owner' order by member.created_at, member.user_id limit 1) as "owner", ((select count(*) as "total" from (select *, (select member.user_id from member join role on role.id = member.role_id where member.organization_id = organization.id and role.built_in and role.name = 'owner' order by member.created_at, member.user_id limit 1) as "owner" from "organization" where "id" = any($)) as "all")) as "page_total" from "organization" where "id" = any($) order by "created_at", "id" limit $ offset $;

select *, (select version from access_version where user_id = $) as "accessVersion" from "organization" where "id" = $ and "id" = any($);

select *, (select version from access_version where user_id = $) as "accessVersion" from "organization" where "id" = $ and "id" = any($) for share;

select *, (select version from access_version where user_id = $) as "accessVersion" from "organization" where "id" = $ and "id" = any($) for update;

select count(*) as "clusters" from "cluster" where "organization_id" = $;

select count(*) as "number" from "custom_domain" where "organization_id" = $ and "service_id" = $;

select count(*) as "receivers" from "alert_receiver" where "organization_id" = $;

select count(*) as "rules" from "alert_rule" where "organization_id" = $;

select count(*) as "services" from "service" where "organization_id" = $ and ("git_token_id" = $ or "values_git_token_id" = $ or (kind = 'AGENTIC_WORKFLOW' and spec -> 'run' is null and spec @> $::jsonb));

select count(*)::int as "runs" from "agentic_run" where "organization_id" = $ and "workflow_id" = $ and "created_at" > now() - interval '1 hour';

select e.id, shown.action, shown.status, shown.outcome, shown.cancel_requested_at, shown.id as deployment_id, shown.number, shown.origin, shown.requested_by_name, shown.started_at, shown.ended_at, ended.ended_at as last_ended_at, e.deployment_number > 0 as requested, coalesce(shown.error, failed.error) as error, case when shown.error is null then failed.error_code end as error_code, case when shown.error is null then failed.error_step end as error_step, case when shown.error is null then failed.error_cause end as error_cause, case when shown.error is null and failed.service_id is not null then json_build_object('id', failed.service_id, 'name', failed.name) end as error_service, coalesce(active.requests, 0)::int as requests, counted.services::int, counted.deployed::int, counted.current::int from environment e left join lateral ( select count(*) as requests, (array_agg(d.id order by d.status = 'WAITING', d.number) filter (where d.whole_environment or d.action <> 'DELETE'))[1] as id from deployment d where d.environment_id = e.id and d.status <> 'ENDED' ) active on true left join lateral ( select d.id, d.ended_at from deployment d where d.environment_id = e.id and d.status = 'ENDED' and (d.whole_environment or d.action <> 'DELETE') and not (d.action = 'RUN' and d.outcome = 'SUCCESS') order by d.number desc limit 1 ) ended on true left join deployment shown on shown.id = coalesce(active.id, ended.id) left join lateral ( select ds.service_id, ds.name, ds.error, ds.error_code, ds.error_step, ds.error_cause from deployment_service ds where ds.deployment_id = shown.id and ds.error is not null order by ds.ended_at, ds.name limit 1 ) failed on true left join lateral ( select count(*) as services, count(r.id) as deployed, count(*) filter (where r.service_version = s.version and r.environment_version = e.version and r.project_version = p.version and (s.newest_commit is null or s.newest_commit = r.resolution -> 'commit' ->> 'id')) as current from service s join project p on p.id = e.project_id left join release r on r.id = s.release_id -- Deploying the environment changes nothing of what something else runs. where s.environment_id = e.id and s.observed is null ) counted on true where e.organization_id = $ and e.id = any($::uuid[]) order by e.created_at, e.id;

select e.project_id, e.id as environment_id, e.mode, c.id as on_cluster_id, c.runtime from service s join environment e on e.id = s.environment_id join cluster c on c.id = e.cluster_id where s.organization_id = $ and s.id = $ and s.kind = $;

select pg_advisory_xact_lock(hashtextextended($, 0));

select sequence, content from job_execution_log where organization_id = $ and execution_id = $ order by sequence desc limit $;

select session.id as session_id, session.secret_hash, session.last_used_at as session_used_at, account.id, account.email, account.email_verified, account.first_name, account.last_name, account.nickname, account.picture_url, account.last_activity_at, coalesce(( select json_agg(json_build_object('organization_id', member.organization_id, 'role', json_build_object('id', "role".id, 'name', "role".name, 'built_in', "role".built_in, 'permissions', "role".permissions)) order by member.created_at, member.organization_id) from member join role on role.id = member.role_id where member.user_id = account.id), '[]') as memberships from sign_in_session session join user_account account on account.id = session.user_id where session.id = $ and session.expires_at > $ and session.last_used_at > $;

select state.epoch <> (select epoch from installation) or state.removed_xid >= pg_snapshot_xmax(pg_current_snapshot()) or exists (select from stream_event where xid >= pg_snapshot_xmax(pg_current_snapshot())) as foreign from stream_state state;

select state.line, state.removed_xid, state.removed_id, last.xid as last_xid, last.id as last_id, exists (select from stream_event late where late.xid >= pg_snapshot_xmin(pg_current_snapshot())) as pending, (state.epoch <> (select epoch from installation) or exists (select from installation where current_timeline() is distinct from coalesce(installation.timeline, '') and current_timeline() is not null)) as line_has_ended, event.* from stream_state state left join lateral ( select xid, id from stream_event where xid < pg_snapshot_xmin(pg_current_snapshot()) order by xid desc, id desc limit 1 ) last on true left join lateral ( select page.xid, page.id, page.organization_id, page.at, page.type, page.project_id, page.environment_id, page.service_id, page.deployment_id, page.data, environment.mode, environment.cluster_id, environment.name as environment_name, project.name as project_name, audit.row as audit from ( select one.* from unnest($::uuid[]) as wanted(id) cross join lateral ( select * from stream_event e where e.organization_id = wanted.id and (e.xid, e.id) > ($::xid8, $::bigint) and e.xid < pg_snapshot_xmin(pg_current_snapshot()) and e.type = any($::text[]) and ($::uuid is null or e."project_id" = $) and ($::uuid is null or e."environment_id" = $) and (e.type = 'log' or ($::uuid is null or e."service_id" = $)) and ($::uuid is null or e."deployment_id" = $) order by e.xid, e.id limit $ ) one order by one.xid, one.id limit $ ) page -- With limits, so that no plan reads these tables whole, however many rows it expects. left join lateral (select mode, cluster_id, name from environment where environment.id = page.environment_id and environment.organization_id = page.organization_id limit 1) environment on true left join lateral (select name from project where project.id = page.project_id and project.organization_id = page.organization_id limit 1) project on true left join lateral (select to_jsonb(audit_event) as row from audit_event where audit_event.at = page.at and audit_event.id = page.audit_id and audit_event.organization_id = page.organization_id limit 1) audit on true ) event on true order by event.xid, event.id;

select token.id, token.name, token.secret_hash, token.scope, token.policy, token.created_by, token.expires_at, token.project_id, token.environment_id, member.organization_id, case when role.id is not null then json_build_object('id', "role".id, 'name', "role".name, 'built_in', "role".built_in, 'permissions', "role".permissions) end as role, json_build_object('id', "creator_role".id, 'name', "creator_role".name, 'built_in', "creator_role".built_in, 'permissions', "creator_role".permissions) as creator_role, (select version from access_version where user_id = token.created_by) as access_version from api_token token join member on member.user_id = token.created_by join role creator_role on creator_role.id = member.role_id left join role on role.id = token.role_id where token.id = $ and ( member.organization_id = token.organization_id or exists (select from api_token_organization made where made.token_id = token.id and made.organization_id = member.organization_id)) order by member.created_at, member.organization_id;

start transaction isolation level repeatable read read only;

update "alert_receiver" set "name" = $, "description" = $, "send_resolved" = $, "owner" = $, "severity" = $, "mail_to" = $, "mail_from" = $, "smarthost" = $, "auth_username" = $, "auth_password" = $, "require_tls" = $, "webhook_url" = $, "failures" = $, "paused_until" = $, "delivery_error" = $, "updated_at" = now() where "organization_id" = $ and "id" = $ returning *;

update "alert_rule" set "name" = $, "description" = $, "tag" = $, "condition" = $, "for_duration" = $, "for_seconds" = $, "severity" = $, "presentation" = $, "enabled" = $, "next_at" = $, "set_by" = $, "set_with" = $, "problem" = $, "failures" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "argo_cd" set "next_at" = now(), "claim_token" = $, "lease_until" = $ where "organization_id" = $ and "id" = $;

update "argo_cd" set "status" = $, "reason" = $, "message" = $, "last_checked_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "advanced_settings" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "dns_provider" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "locked_at" = $, "locked_by" = $, "lock_reason" = $, "lock_ttl_days" = $, "lock_expires_at" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "name" = $, "region" = $, "spec" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "routing_table" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "cluster" set "runtime" = $ where "organization_id" = $ and "id" = $;

update "cluster" set "version" = version + 1 where "organization_id" = $ and cluster.spec -> 'labels_groups' @> jsonb_build_array(jsonb_build_object('id', $::text));

update "cluster" set "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "container_registry" set "name" = $, "description" = $, "kind" = $, "url" = $, "secrets" = $, "config" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "credentials" set "name" = $, "object_type" = $, "secrets" = $, "fields" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "custom_domain" set "domain" = $, "generate_certificate" = $, "use_cdn" = $, "challenge" = $, "validated_at" = $, "claimed_at" = $, "proof_state" = $, "proof_checked_at" = $, "proven_at" = $, "proof_missing_since" = $, "proof_error" = $, "certificate_state" = $, "certificate_expires_at" = $, "certificate_error" = $, "updated_at" = now() where "organization_id" = $ and "id" = $ returning *;

update "custom_domain" set "proof_checked_at" = $, "proof_error" = $, "proof_state" = $ where "organization_id" = $ and "id" = $ returning *;

update "database_restore" set "status" = $, "updated_at" = now() where "organization_id" = $ and "id" = $ and "status" = $ and "created_at" > now() - interval '1 hour' and not exists (select "other"."id" from "database_restore" as "other" where "other"."organization_id" = $ and "other"."database_id" = $ and "other"."status" in ($…));

update "deployment" set "cancel_requested_at" = coalesce(cancel_requested_at, now()), "cancel_forced" = cancel_forced or $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "deployment" set "status" = $, "ended_at" = clock_timestamp(), "updated_at" = now(), "claim_token" = $, "worker_id" = $, "lease_until" = $, "outcome" = $ where "organization_id" = $ and "id" = $ and "status" <> $;

update "deployment_restriction" set "mode" = $, "type" = $, "value" = $, "updated_at" = now() where "organization_id" = $ and "id" = $ returning *;

update "deployment_service" set "state" = case state when 'DEPLOYMENT_QUEUED' then 'CANCELED' when 'WAITING_RUNNING' then 'CANCELED' when 'BUILDING' then 'CANCELED' when 'DEPLOYING' then 'CANCELED' when 'EXECUTING' then 'CANCELED' when 'CANCELING' then 'CANCELED' end, "updated_at" = now(), "started_at" = coalesce(started_at, now()), "ended_at" = case when case state when 'DEPLOYMENT_QUEUED' then 'CANCELED' when 'WAITING_RUNNING' then 'CANCELED' when 'BUILDING' then 'CANCELED' when 'DEPLOYING' then 'CANCELED' when 'EXECUTING' then 'CANCELED' when 'CANCELING' then 'CANCELED' end = 'CANCELING' then null else clock_timestamp() end where "organization_id" = $ and "deployment_id" = $ and "state" = any($) returning "service_id", "state", "name", "kind", "error", "error_code", "error_step", "error_cause";

update "deployment_service" set "state" = case state when 'DEPLOYMENT_QUEUED' then 'CANCELED' when 'WAITING_RUNNING' then 'CANCELED' when 'BUILDING' then 'CANCELING' when 'DEPLOYING' then 'CANCELING' when 'EXECUTING' then 'CANCELING' end, "updated_at" = now(), "started_at" = coalesce(started_at, now()), "ended_at" = case when case state when 'DEPLOYMENT_QUEUED' then 'CANCELED' when 'WAITING_RUNNING' then 'CANCELED' when 'BUILDING' then 'CANCELING' when 'DEPLOYING' then 'CANCELING' when 'EXECUTING' then 'CANCELING' end = 'CANCELING' then null else clock_timestamp() end where "organization_id" = $ and "deployment_id" = $ and "state" = any($) returning "service_id", "state", "name", "kind", "error", "error_code", "error_step", "error_cause";

update "deployment_service" set "state" = case state when 'STOP_QUEUED' then 'CANCELED' when 'WAITING_STOPPING' then 'CANCELED' when 'BUILDING' then 'CANCELED' when 'STOPPING' then 'CANCELED' when 'EXECUTING' then 'CANCELED' when 'CANCELING' then 'CANCELED' end, "updated_at" = now(), "started_at" = coalesce(started_at, now()), "ended_at" = case when case state when 'STOP_QUEUED' then 'CANCELED' when 'WAITING_STOPPING' then 'CANCELED' when 'BUILDING' then 'CANCELED' when 'STOPPING' then 'CANCELED' when 'EXECUTING' then 'CANCELED' when 'CANCELING' then 'CANCELED' end = 'CANCELING' then null else clock_timestamp() end where "organization_id" = $ and "deployment_id" = $ and "state" = any($) returning "service_id", "state", "name", "kind", "error", "error_code", "error_step", "error_cause";

update "deployment_service" set "state" = case state when 'STOP_QUEUED' then 'CANCELED' when 'WAITING_STOPPING' then 'CANCELED' when 'BUILDING' then 'CANCELING' when 'STOPPING' then 'CANCELING' when 'EXECUTING' then 'CANCELING' end, "updated_at" = now(), "started_at" = coalesce(started_at, now()), "ended_at" = case when case state when 'STOP_QUEUED' then 'CANCELED' when 'WAITING_STOPPING' then 'CANCELED' when 'BUILDING' then 'CANCELING' when 'STOPPING' then 'CANCELING' when 'EXECUTING' then 'CANCELING' end = 'CANCELING' then null else clock_timestamp() end where "organization_id" = $ and "deployment_id" = $ and "state" = any($) returning "service_id", "state", "name", "kind", "error", "error_code", "error_step", "error_cause";

update "deployment_stage" set "name" = $, "description" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "deployment_step" set "status" = $, "ended_at" = clock_timestamp() where "organization_id" = $ and "deployment_id" = $ and "status" = $;

update "environment" set "deleting" = $ where "organization_id" = $ and "id" = $;

update "environment" set "deployment_number" = deployment_number + 1 where "organization_id" = $ and "id" = $ returning "deployment_number";

update "environment" set "name" = $, "mode" = $, "last_updated_by" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "environment" set "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "environment_deployment_rule" set "auto_stop" = $, "timezone" = $, "start_time" = $, "stop_time" = $, "weekdays" = $, "auto_preview" = $, "on_demand_preview" = $, "preview_databases" = $, "next_at" = $, "set_by" = $, "set_with" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "git_token" set "name" = $, "description" = $, "type" = $, "token" = $, "git_api_url" = $, "workspace" = $, "expired_at" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "helm_repository" set "name" = $, "description" = $, "skip_tls_verification" = $, "kind" = $, "url" = $, "secrets" = $, "config" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "installation" set "audit_key" = $ where "audit_key" is null;

update "installation" set "first_organization_id" = $ where "first_organization_id" is null;

update "job_execution" set "discarded" = $ where "organization_id" = $ and "service_id" = any($::uuid[]) and "state" in ($…) and "discarded" = $ returning "service_id", "tasks", "attempts";

update "mcp_server" set "name" = $, "description" = $, "url" = $, "headers" = $, "header_names" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "member_invitation" set "secret_hash" = $, "mail_secret_hash" = $ where "invited_by" = $;

update "metadata_group" set "name" = $, "scopes" = $, "entries" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "organization" set "name" = $, "plan" = $, "updated_at" = now() where "id" = $;

update "organization" set "name" = $, "updated_at" = now() where "id" = $;

update "preview" set "status" = $, "attempts" = $, "claim_token" = $, "lease_until" = $, "ended_at" = $, "due_at" = now(), "approved_commit" = $, "approved_by" = $, "approved_with" = $, "approved_at" = $ where "organization_id" = $ and "id" = $;

update "preview" set "status" = $, "attempts" = $, "claim_token" = $, "lease_until" = $, "ended_at" = $, "due_at" = now(), "error" = $, "approved_commit" = $, "approved_by" = $, "approved_with" = $, "approved_at" = now(), "applied_commit" = case when exists (select from environment e where e.organization_id = preview.organization_id and e.id = preview.environment_id and not e.deleting) then preview.applied_commit end where "organization_id" = $ and "id" = $;

update "project" set "deleting" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "project" set "name" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "project" set "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "project_deployment_rule" set "name" = $, "description" = $, "mode" = $, "cluster_id" = $, "wildcard" = $, "auto_stop" = $, "timezone" = $, "start_time" = $, "stop_time" = $, "weekdays" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "role" set "name" = $, "permissions" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "service" set "advanced_settings" = $, "last_updated_by" = $, "last_updated_with" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "service" set "deleting" = $ where "organization_id" = $ and "id" = any($);

update "service" set "name" = $, "description" = $, "icon_uri" = $, "requires" = $, "last_updated_by" = $, "last_updated_with" = $, "spec" = $, "details" = $, "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "service" set "stage_id" = $, "updated_at" = now() where "organization_id" = $ and "environment_id" = $ and "id" = $;

update "service" set "version" = version + 1 where "organization_id" = $ and (coalesce(service.spec -> 'labels_groups', '[]'::jsonb) || coalesce(service.spec -> 'annotations_groups', '[]'::jsonb)) ? $::text;

update "service" set "version" = version + 1, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "service" set "wanted" = $ where "organization_id" = $ and "id" = $;

update "sign_in_attempt" set "used" = greatest(used - 1, 0) where "key" = $ and "started_at" = $;

update "source_upload" set "requested_at" = now() where "organization_id" = $ and "service_id" = $ and "id" = $ and "stored_at" is not null returning "id";

update "source_upload" set "requested_at" = now() where "organization_id" = $ and "service_id" = $ and "tree_id" = $ and "stored_at" is not null returning *;

update "source_upload" set "stored_at" = now() where "organization_id" = $ and "id" = $ returning *;

update "user_account" set "communication_email" = $, "updated_at" = now() where "id" = $;

update "user_account" set "first_name" = $, "last_name" = $, "updated_at" = now() where "id" = $ and "first_name" = $ and "last_name" = $;

update "variable" set "key" = $, "value" = $, "value_version" = $, "mount_path" = $, "description" = $, "enable_interpolation_in_file" = $, "secret_manager_access_id" = $, "access_chosen_by" = $, "access_chosen_with" = $, "updated_at" = now() where "organization_id" = $ and "id" = $;

update "variable" set "value" = "change"."value", "value_version" = "change"."value_version", "access_chosen_by" = "change"."access_chosen_by", "access_chosen_with" = "change"."access_chosen_with", "updated_at" = now() from unnest( $::uuid[], $::text[], $::int[], $::uuid[], $::uuid[]) as change (id, value, value_version, access_chosen_by, access_chosen_with) where "variable"."organization_id" = $ and "variable"."id" = "change"."id";

update "webhook" set "target_url" = $, "events" = $, "subscribed_events" = $, "updated_at" = now() where "organization_id" = $ and "id" = $ returning *;

update "webhook_delivery" set "state" = $, "tries" = $, "next_attempt_at" = now(), "created_at" = now() where "organization_id" = $ and "id" = $ returning *;

update deployment_stage set position = place.position - 1 from unnest($::uuid[]) with ordinality as place (id, position) where deployment_stage.organization_id = $ and deployment_stage.id = place.id;

update installation set epoch = epoch + 1, timeline = current_timeline() where current_timeline() is distinct from coalesce(installation.timeline, '') and current_timeline() is not null returning epoch;

update project_deployment_rule set position = place.position - 1 from unnest($::uuid[]) with ordinality as place (id, position) where project_deployment_rule.organization_id = $ and project_deployment_rule.id = place.id;

with named as ( select u.id, u.requested_at, u.stored_at, exists (select from deployment_service s where s.service_id = u.service_id and s.commit ->> 'id' = u.commit_id) as is_named, exists (select from ( select s.commit ->> 'id' as id from deployment_service s where s.service_id = u.service_id and s.commit is not null order by s.number desc limit $) newest where newest.id = u.commit_id) as is_new, exists (select from deployment_service s join deployment d on d.id = s.deployment_id where s.service_id = u.service_id and d.status <> 'ENDED') as is_busy, exists (select from deployment_service s join deployment d on d.id = s.deployment_id, jsonb_array_elements(d.snapshot -> 'services') as frozen where s.service_id = u.service_id and d.status <> 'ENDED' and frozen ->> 'serviceId' = u.service_id::text and u.commit_id like (frozen ->> 'commitId') || '%') as is_asked, exists (select from service join release r on r.id = service.release_id where service.id = u.service_id and r.resolution -> 'commit' ->> 'id' = u.commit_id) as is_released, row_number() over (partition by u.service_id, u.stored_at is null order by u.requested_at desc, u.id) as rank from source_upload u where u.organization_id = $ and u.service_id = $ ) delete from source_upload u using named n where n.id = u.id and n.requested_at = u.requested_at and n.stored_at is not distinct from u.stored_at and not (n.is_new or n.is_asked or n.is_released or n.is_named and n.is_busy) and (n.stored_at is not null and n.rank > $ or u.requested_at < now() - make_interval(secs => $));

with place as materialized ( select e.id, e.version, e.deployment_number, p.version as project_version, c.reached_at, case when c.node_id is not null then json_build_object('drainedAt', n.drained_at, 'lostSince', case when (n.seen_at < now() - make_interval(secs => 120)) then n.seen_at end) else (select json_build_object('drainedAt', max(n.drained_at), 'lostSince', null) from node n where not (n.seen_at < now() - make_interval(secs => 120)) having bool_and(n.drained_at is not null)) end as machine from environment e join project p on p.id = e.project_id join cluster c on c.id = e.cluster_id left join node n on n.id = c.node_id where e.organization_id = $ and e.id = any($::uuid[]) ) select s.id, s.environment_id, s.kind, s.name, s.wanted, r.id is not null as deployed, coalesce(r.service_version = s.version and r.environment_version = e.version and r.project_version = e.project_version and (s.newest_commit is null or s.newest_commit = r.resolution -> 'commit' ->> 'id'), false) as current, (s.wanted <> 'absent' or s.observed is not null) and coalesce(coalesce(argo.reached_at, e.reached_at) < now() - make_interval(secs => 180), false) as unreachable, s.observed, shown.action, shown.sub_action, shown.state, shown.deployment_id, shown.number, shown.request_status, shown.started_at, shown.ended_at, shown.error, shown.error_code, shown.error_step, shown.error_cause, ended.ended_at as last_deployment_date, coalesce(active.requests, 0)::int as requests, nullif(e.deployment_number, 0) as last_number, (select json_agg(json_build_object('name', t.name, 'status', t.status, 'started_at', t.started_at, 'ended_at', t.ended_at) order by t.position) from deployment_step t where t.organization_id = s.organization_id and t.deployment_id = shown.deployment_id and t.service_id = s.id and t.status <> 'STARTED') as steps, (select json_agg(json_build_object('code', w.code, 'message', w.message, 'since', w.created_at) order by w.created_at, w.subject) from service_warning w where w.organization_id = s.organization_id and w.service_id = s.id) as warnings, case when shown.request_status = 'WAITING' then e.machine end as machine from service s join place e on e.id = s.environment_id left join argo_cd argo on argo.id = s.argo_cd_id and argo.organization_id = s.organization_id left join release r on r.id = s.release_id left join lateral ( select count(*) as requests, (array_agg(d.id order by d.status = 'WAITING', d.number))[1] as id from deployment d join deployment_service ds on ds.deployment_id = d.id where d.environment_id = s.environment_id and d.status <> 'ENDED' and ds.service_id = s.id ) active on true left join lateral ( select d.id, coalesce(ds.ended_at, d.ended_at) as ended_at from deployment_service ds cross join lateral ( select id, ended_at from deployment where id = ds.deployment_id and status = 'ENDED' and not (action = 'RUN' and outcome = 'SUCCESS') offset 0) d where ds.service_id = s.id order by ds.number desc limit 1 ) ended on true left join lateral ( select ds.action, ds.sub_action, ds.state, ds.deployment_id, ds.number, d.status as request_status, ds.started_at, ds.ended_at, ds.error, ds.error_code, ds.error_step, ds.error_cause from deployment_service ds join deployment d on d.id = ds.deployment_id where ds.deployment_id = coalesce(active.id, ended.id) and ds.service_id = s.id offset 0 ) shown on true where s.organization_id = $ and s.environment_id = any($::uuid[]) order by s.created_at, s.id;

with place as materialized ( select e.id, e.version, e.deployment_number, p.version as project_version, c.reached_at, case when c.node_id is not null then json_build_object('drainedAt', n.drained_at, 'lostSince', case when (n.seen_at < now() - make_interval(secs => 120)) then n.seen_at end) else (select json_build_object('drainedAt', max(n.drained_at), 'lostSince', null) from node n where not (n.seen_at < now() - make_interval(secs => 120)) having bool_and(n.drained_at is not null)) end as machine from environment e join project p on p.id = e.project_id join cluster c on c.id = e.cluster_id left join node n on n.id = c.node_id where e.organization_id = $ and e.id in (select environment_id from service where organization_id = $ and id = any($::uuid[])) ) select s.id, s.environment_id, s.kind, s.name, s.wanted, r.id is not null as deployed, coalesce(r.service_version = s.version and r.environment_version = e.version and r.project_version = e.project_version and (s.newest_commit is null or s.newest_commit = r.resolution -> 'commit' ->> 'id'), false) as current, (s.wanted <> 'absent' or s.observed is not null) and coalesce(coalesce(argo.reached_at, e.reached_at) < now() - make_interval(secs => 180), false) as unreachable, s.observed, shown.action, shown.sub_action, shown.state, shown.deployment_id, shown.number, shown.request_status, shown.started_at, shown.ended_at, shown.error, shown.error_code, shown.error_step, shown.error_cause, ended.ended_at as last_deployment_date, coalesce(active.requests, 0)::int as requests, nullif(e.deployment_number, 0) as last_number, (select json_agg(json_build_object('name', t.name, 'status', t.status, 'started_at', t.started_at, 'ended_at', t.ended_at) order by t.position) from deployment_step t where t.organization_id = s.organization_id and t.deployment_id = shown.deployment_id and t.service_id = s.id and t.status <> 'STARTED') as steps, (select json_agg(json_build_object('code', w.code, 'message', w.message, 'since', w.created_at) order by w.created_at, w.subject) from service_warning w where w.organization_id = s.organization_id and w.service_id = s.id) as warnings, case when shown.request_status = 'WAITING' then e.machine end as machine from service s join place e on e.id = s.environment_id left join argo_cd argo on argo.id = s.argo_cd_id and argo.organization_id = s.organization_id left join release r on r.id = s.release_id left join lateral ( select count(*) as requests, (array_agg(d.id order by d.status = 'WAITING', d.number))[1] as id from deployment d join deployment_service ds on ds.deployment_id = d.id where d.environment_id = s.environment_id and d.status <> 'ENDED' and ds.service_id = s.id ) active on true left join lateral ( select d.id, coalesce(ds.ended_at, d.ended_at) as ended_at from deployment_service ds cross join lateral ( select id, ended_at from deployment where id = ds.deployment_id and status = 'ENDED' and not (action = 'RUN' and outcome = 'SUCCESS') offset 0) d where ds.service_id = s.id order by ds.number desc limit 1 ) ended on true left join lateral ( select ds.action, ds.sub_action, ds.state, ds.deployment_id, ds.number, d.status as request_status, ds.started_at, ds.ended_at, ds.error, ds.error_code, ds.error_step, ds.error_cause from deployment_service ds join deployment d on d.id = ds.deployment_id where ds.deployment_id = coalesce(active.id, ended.id) and ds.service_id = s.id offset 0 ) shown on true where s.organization_id = $ and s.id = any($::uuid[]) order by s.created_at, s.id;

with recursive "dependent"("id", "overrides_only") as (select "variable"."id", variable.overridden_id is not null as "overrides_only" from "variable" where ("overridden_id" = $ or "aliased_id" = $) union all select "variable"."id", dependent.overrides_only and variable.overridden_id is not null as "overrides_only" from "variable" inner join "dependent" on ("variable"."overridden_id" = "dependent"."id" or "variable"."aliased_id" = "dependent"."id")) select "variable"."id", "variable"."key", "variable"."is_secret", "variable"."scope", "dependent"."overrides_only", "service"."id" as "service_id", "service"."name" as "service_name", "environment"."id" as "environment_id", "environment"."name" as "environment_name", "project"."id" as "project_id", "project"."name" as "project_name" from "dependent" inner join "variable" on "variable"."id" = "dependent"."id" left join "service" on "service"."id" = "variable"."service_id" left join "environment" on environment.id = coalesce(variable.environment_id, service.environment_id) inner join "project" on project.id = coalesce(variable.project_id, environment.project_id) where "variable"."organization_id" = $;
