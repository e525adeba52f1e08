import { kindsWith } from '#kernel/kinds.ts';
import { newOrderedId } from '#kernel/ids.ts';
import { json } from '#platform/database/json.ts';
import { signEvent } from '#platform/events/chain/sign.ts';
import type { Context } from '#platform/context.ts';

/** `event_type` of audit events (docs/contributing/rules.md, *Types of events*). */
export const EVENT_TYPES = [
  'CREATE',
  'UPDATE',
  'DELETE',
  'ACCEPT',
  'EXPORT',
  'CLONE',
  'DEPLOY_QUEUED',
  'STOP_QUEUED',
  'RESTART_QUEUED',
  'DELETE_QUEUED',
  'UNINSTALL_QUEUED',
  'MAINTENANCE',
  'DRY_RUN',
  'TRIGGER_REDEPLOY',
  'TRIGGER_CANCEL',
  'FORCE_RUN_QUEUED',
  'FORCE_RUN_QUEUED_DEPLOY',
  'FORCE_RUN_QUEUED_STOP',
  'FORCE_RUN_QUEUED_DELETE',
  'TRIGGER_DEPLOY',
  'TRIGGER_STOP',
  'TRIGGER_RESTART',
  'TRIGGER_DELETE',
  'TRIGGER_UNINSTALL',
  'TRIGGER_DEPLOY_DRY_RUN',
  'TRIGGER_TERRAFORM_FORCE_UNLOCK',
  'TRIGGER_TERRAFORM_MIGRATE_STATE',
  'TRIGGER_FORCE_RUN',
  'TRIGGER_FORCE_RUN_DEPLOY',
  'TRIGGER_FORCE_RUN_STOP',
  'TRIGGER_FORCE_RUN_DELETE',
  'DEPLOYED',
  'STOPPED',
  'DELETED',
  'UNINSTALLED',
  'RESTARTED',
  'DEPLOYED_DRY_RUN',
  'FORCE_RUN_SUCCEEDED',
  'TERRAFORM_FORCE_UNLOCK_SUCCEEDED',
  'TERRAFORM_MIGRATE_STATE_SUCCEEDED',
  'DEPLOY_FAILED',
  'STOP_FAILED',
  'DELETE_FAILED',
  'UNINSTALL_FAILED',
  'RESTART_FAILED',
  'DEPLOYED_DRY_RUN_FAILED',
  'FORCE_RUN_FAILED',
  'TERRAFORM_FORCE_UNLOCK_FAILED',
  'TERRAFORM_MIGRATE_STATE_FAILED',
  'SHELL',
  'PORT_FORWARD',
  'REMOTE_DEBUG',
  'MCP',
  'IMPORT',
  'LOCK',
  'UNLOCK',
  'POLICY_FAILED',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** `target_type` of audit events (docs/contributing/rules.md, *Endpoints*, endpoint 14). */
export const TARGET_TYPES = [
  ...kindsWith('audited'),
  'CLUSTER' as const,
  'CONTAINER_REGISTRY' as const,
  'ENTERPRISE_CONNECTION' as const,
  'ENVIRONMENT' as const,
  'HELM_REPOSITORY' as const,
  'MEMBERS_AND_ROLES' as const,
  'ORGANIZATION' as const,
  'PROJECT' as const,
  'WEBHOOK' as const,
];
export type TargetType = (typeof TARGET_TYPES)[number];

/** `sub_target_type` of audit events: what of the target was changed (docs/contributing/rules.md 42). */
export const SUB_TARGET_TYPES = [
  'ADVANCED_SETTINGS',
  'ALERT_RECEIVER',
  'ALERT_RULE',
  'ANNOTATIONS_GROUP',
  'API_TOKEN',
  'ARGOCD_CLUSTER_MAPPING',
  'ARGOCD_CONFIGURATION',
  'BILLING_INFO',
  'BILLING_USAGE_REPORT',
  'BLUEPRINT_MIGRATION',
  'CLOUD_PROVIDER_CREDENTIALS',
  'CLUSTER_CREDENTIALS',
  'CLUSTER_ROUTING_TABLE',
  'CONFIG',
  'CREDIT_CARD',
  'CREDIT_CODE',
  'CUSTOM_DOMAIN',
  'CUSTOM_ROLE',
  'DEPLOYMENT_RULE',
  'DEPLOYMENT_STAGE',
  'DNS_PROVIDER',
  'GITHUB_APP',
  'GIT_REPOSITORY',
  'GIT_TOKEN',
  'INVITATION',
  'JWT_TOKEN_FORGED',
  'KUBERNETES_CONFIGURATION',
  'KUBERNETES_CREDENTIALS',
  'LABELS_GROUP',
  'MCP_SERVER',
  'MEMBER_ROLE',
  'PLAN',
  'POLICY_API_TOKEN',
  'REMOTE_ACCESS',
  'SECRET',
  'SSO',
  'TERRAFORM',
  'TOOL_CALL',
  'TRANSFER_OWNERSHIP',
  'VARIABLE',
] as const;
export type SubTargetType = (typeof SUB_TARGET_TYPES)[number];

export interface AuditEntry {
  organizationId: string;
  type: EventType;
  target: { type: TargetType; id: string; name: string; sub?: SubTargetType };
  /** Project and environment that contain the target, or that are the target. */
  project?: { id: string; name: string };
  environment?: { id: string; name: string };
  /** State before and after, as views: secrets must not be in them (docs/contributing/rules.md 36, 42). */
  before?: unknown;
  after?: unknown;
}

/** Writes one audit event, in the transaction of the change that it tells of (docs/contributing/rules.md 42). */
export async function audit(context: Context, entry: AuditEntry): Promise<void> {
  await auditInsert(context, entry).execute();
}

/** Returns the insert of an audit event, as a part of a larger statement. */
export function auditInsert(context: Context, entry: AuditEntry) {
  const { actor } = context;
  const at = context.clock.now();
  const event = {
    id: newOrderedId(at.getTime()),
    organization_id: entry.organizationId,
    event_type: entry.type,
    target_type: entry.target.type,
    target_id: entry.target.id,
    target_name: entry.target.name,
    sub_target_type: entry.target.sub ?? null,
    project_id: entry.project?.id ?? null,
    project_name: entry.project?.name ?? null,
    environment_id: entry.environment?.id ?? null,
    environment_name: entry.environment?.name ?? null,
    triggered_by: actor.name,
    triggered_by_id: actor.userId,
    origin: actor.origin,
    user_agent: actor.userAgent,
    request_id: context.requestId,
  };
  const change = entry.after === undefined ? null : json(entry.after);
  const original_change = entry.before === undefined ? null : json(entry.before);
  // Signed as it will be read, whatever the views were made of.
  const mac = signEvent(context.vault, {
    ...event,
    atMicros: at.getTime() * 1000,
    change: change && JSON.parse(change),
    original_change: original_change && JSON.parse(original_change),
  });
  return context.db.insertInto('audit_event').values({ ...event, at, change, original_change, mac });
}
