import { factsOf } from '#kernel/kinds.ts';
import type { SettingGroup } from '#kernel/service-kinds.ts';
import { Nullable, OneOf, Type, type TSchema } from '#platform/http/schema.ts';

/** Advanced setting: its schema, its default and the group of kinds that have it. */
export interface AdvancedSetting {
  schema: TSchema;
  default: unknown;
  description: string;
  /** Group that it belongs to: kinds have groups of settings. */
  group: SettingGroup;
}

const setting = (group: SettingGroup, schema: TSchema, fallback: unknown, description: string): AdvancedSetting => ({
  group,
  schema,
  default: fallback,
  description,
});

const flag = Type.Boolean();
const labels = Type.Object({}, { additionalProperties: Type.String({ maxLength: 255 }) });
const text = Type.String({ maxLength: 4000 });
const words = Type.Array(Type.String({ maxLength: 10_000 }), { maxItems: 1000 });
const whole = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const seconds = whole(0, 86_400);
const percent = whole(0, 100);
const optionalSeconds = Nullable(seconds);

/** Advanced settings of services. Schemas, defaults and checks are made from this table. */
export const ADVANCED_SETTINGS: Record<string, AdvancedSetting> = {
  'deployment.custom_domain_check_enabled': setting('web', flag, true, 'Whether custom domains are looked up in the DNS before a deployment.'),
  'deployment.termination_grace_period_seconds': setting('pods', seconds, 60, 'Seconds that an instance may take to end after SIGTERM.'),
  'deployment.affinity.node.required': setting('pods', labels, {}, 'Labels that a node must have.'),
  'deployment.antiaffinity.pod': setting('replicas', OneOf(['Preferred', 'Requirred']), 'Preferred', 'Whether instances must stand on different nodes.'),
  'deployment.topology_spread.zone': setting('replicas', OneOf(['Disabled', 'ScheduleAnyway', 'DoNotSchedule']), 'Disabled', 'How instances are spread over zones.'),
  'deployment.lifecycle.post_start_exec_command': setting('lifecycleCommands', words, [], 'Command that is run in an instance once it has started.'),
  'deployment.lifecycle.pre_stop_exec_command': setting('lifecycleCommands', words, [], 'Command that is run in an instance before it is stopped.'),
  'deployment.update_strategy.type': setting('replicas', OneOf(['RollingUpdate', 'Recreate']), 'RollingUpdate', 'Whether new instances are made before old ones go.'),
  'deployment.update_strategy.rolling_update.max_unavailable_percent': setting('replicas', percent, 25, 'Instances that may be missing during an update.'),
  'deployment.update_strategy.rolling_update.max_surge_percent': setting('replicas', percent, 25, 'Instances that may be there in excess during an update.'),
  'build.timeout_max_sec': setting('builds', whole(1, 86_400), 1800, 'Seconds after which a build is ended.'),
  'build.cpu_max_in_milli': setting('builds', whole(10, 1_000_000), 4000, 'Milli-CPU that a build may use.'),
  'build.ram_max_in_gib': setting('builds', whole(1, 10_000), 8, 'GiB of memory that a build may use.'),
  'build.ephemeral_storage_in_gib': setting('buildStorage', whole(1, 65_536), 4, 'GiB of storage that a build may use.'),
  'build.disable_buildkit_cache': setting('buildCache', flag, false, 'Whether every layer is built anew.'),
  'build.skip_git_submodules': setting('builds', flag, false, 'Whether submodules are left out of the checkout.'),
  'network.ingress.proxy_body_size_mb': setting('web', whole(0, 100_000), 100, 'Largest body of a request in MB; 0 for no limit.'),
  'network.ingress.force_ssl_redirect': setting('web', flag, true, 'Whether HTTP is redirected to HTTPS where the host has a certificate.'),
  'network.ingress.enable_cors': setting('web', flag, false, 'Whether the proxy answers CORS requests.'),
  'network.ingress.cors_allow_origin': setting('web', text, '*', 'Origins that CORS allows.'),
  'network.ingress.cors_allow_methods': setting('web', text, 'GET, PUT, POST, DELETE, PATCH, OPTIONS', 'Methods that CORS allows.'),
  'network.ingress.cors_allow_headers': setting('web', text, 'DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization', 'Headers that CORS allows.'),
  'network.ingress.proxy_buffer_size_kb': setting('web', whole(1, 1024), 4, 'KB of an answer\'s header that are buffered.'),
  'network.ingress.keepalive_time_seconds': setting('web', seconds, 3600, 'Seconds for which requests are taken on one connection.'),
  'network.ingress.keepalive_timeout_seconds': setting('web', seconds, 60, 'Seconds that an idle connection is kept.'),
  'network.ingress.send_timeout_seconds': setting('web', seconds, 60, 'Seconds between two writes to a client.'),
  'network.ingress.proxy_connect_timeout_seconds': setting('web', seconds, 60, 'Seconds for connecting to an instance.'),
  'network.ingress.proxy_send_timeout_seconds': setting('web', seconds, 60, 'Seconds between two writes to an instance.'),
  'network.ingress.proxy_read_timeout_seconds': setting('web', seconds, 60, 'Seconds between two reads from an instance.'),
  'network.ingress.proxy_buffering': setting('web', OneOf(['on', 'off']), 'on', 'Whether answers are buffered.'),
  'network.ingress.proxy_request_buffering': setting('requestBuffering', OneOf(['on', 'off']), 'on', 'Whether requests are buffered.'),
  'network.ingress.whitelist_source_range': setting('web', text, '0.0.0.0/0', 'Networks that may call the service, separated by commas.'),
  'network.ingress.denylist_source_range': setting('web', text, '', 'Networks that may not call the service, separated by commas.'),
  'network.ingress.basic_auth_env_var': setting('web', text, '', 'Variable that holds the accounts for basic authentication.'),
  'network.ingress.enable_sticky_session': setting('web', flag, false, 'Whether requests of one client go to one instance.'),
  'network.ingress.grpc_send_timeout_seconds': setting('web', seconds, 60, 'Seconds between two writes to an instance by gRPC.'),
  'network.ingress.grpc_read_timeout_seconds': setting('web', seconds, 60, 'Seconds between two reads from an instance by gRPC.'),
  'network.ingress.extra_headers': setting('web', text, '{}', 'Headers that are added to answers, as a JSON object.'),
  'network.gateway_api.http_request_timeout_seconds': setting('web', optionalSeconds, null, 'Seconds for a whole request through a gateway.'),
  'network.gateway_api.http_connection_idle_timeout_seconds': setting('web', optionalSeconds, null, 'Seconds that an idle connection to a gateway is kept.'),
  'network.gateway_api.retry.num_retries': setting('web', Nullable(whole(0, 100)), null, 'Times that a gateway tries a failed request again.'),
  'network.gateway_api.retry.retry_on': setting('web', Nullable(text), null, 'Failures that a gateway tries again, separated by commas.'),
  'network.gateway_api.retry.http_status_codes': setting('web', Nullable(text), null, 'Statuses that a gateway tries again, separated by commas.'),
  'network.gateway_api.retry.per_try_timeout_seconds': setting('web', Nullable(whole(1, 86_400)), null, 'Seconds for each try through a gateway.'),
  'hpa.cpu.average_utilization_percent': setting('replicas', whole(1, 100), 60, 'Use of CPU at which instances are added.'),
  'hpa.memory.average_utilization_percent': setting('replicas', Nullable(whole(1, 100)), null, 'Use of memory at which instances are added.'),
  'job.delete_ttl_seconds_after_finished': setting('runs', Nullable(whole(0, 31_536_000)), null, 'Seconds after which what a failed run left on the cluster is removed.'),
  'cronjob.concurrency_policy': setting('runs', OneOf(['Allow', 'Forbid', 'Replace']), 'Forbid', 'What becomes of a run that is due while the last one goes on.'),
  'cronjob.failed_jobs_history_limit': setting('runs', whole(0, 1000), 1, 'Failed runs of which the cluster keeps what they left; what was run and its log are kept anyway.'),
  'cronjob.success_jobs_history_limit': setting('runs', whole(0, 1000), 1, 'Successful runs that a Kubernetes cluster keeps; what was run and its log are kept anyway.'),
  'security.service_account_name': setting('pods', text, '', 'Kubernetes service account of the instances.'),
  'security.automount_service_account_token': setting('serviceAccountToken', flag, false, 'Whether that account\'s token is mounted.'),
  'security.read_only_root_filesystem': setting('pods', flag, false, 'Whether the file system of an instance is read-only.'),
}; // prettier-ignore

/** Returns the settings of a kind by key. */
export const settingsOf = (kind: string): [string, AdvancedSetting][] =>
  Object.entries(ADVANCED_SETTINGS).filter(([, { group }]) => factsOf(kind).settings?.includes(group));

/** Columns of a service's row that its advanced settings are computed from. */
export interface SettingsRow {
  kind: string;
  advanced_settings: unknown;
}

/** Returns all advanced settings of a service: the stored values, else the defaults. */
export function advancedSettingsOf(row: SettingsRow): Record<string, unknown> {
  const own = row.advanced_settings as Record<string, unknown>;
  return Object.fromEntries(settingsOf(row.kind).map(([key, one]) => [key, key in own ? own[key] : one.default]));
}

/** Returns the given settings that differ from the default, which are all that is stored. Null means the default. */
export function differing(kind: string, given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    settingsOf(kind)
      .map(([key, one]) => [key, given[key] ?? one.default, one.default] as const)
      .filter(([, value, fallback]) => JSON.stringify(value) !== JSON.stringify(fallback))
      .map(([key, value]) => [key, value]),
  );
}
