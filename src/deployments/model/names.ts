import { factsOf } from '#kernel/kinds.ts';
import type { EventType } from '#platform/events/audit.ts';
import type { ServiceSnapshot } from '#deployments/model/snapshot.ts';
import type { DeploymentAction, RunEvent } from '#deployments/model/states.ts';

/** Audit events of a request (docs/contributing/rules.md 42): asked for, queued (not each has such an event), and its two ends. */
export interface RequestEvents {
  asked: EventType;
  queued: EventType | null;
  done: EventType;
  failed: EventType;
}

const OF_ACTION: Record<Exclude<DeploymentAction, 'RUN'>, RequestEvents> = {
  DEPLOY: { asked: 'TRIGGER_DEPLOY', queued: 'DEPLOY_QUEUED', done: 'DEPLOYED', failed: 'DEPLOY_FAILED' },
  STOP: { asked: 'TRIGGER_STOP', queued: 'STOP_QUEUED', done: 'STOPPED', failed: 'STOP_FAILED' },
  RESTART: { asked: 'TRIGGER_RESTART', queued: 'RESTART_QUEUED', done: 'RESTARTED', failed: 'RESTART_FAILED' },
  DELETE: { asked: 'TRIGGER_DELETE', queued: 'DELETE_QUEUED', done: 'DELETED', failed: 'DELETE_FAILED' },
  UNINSTALL: {
    asked: 'TRIGGER_UNINSTALL',
    queued: 'UNINSTALL_QUEUED',
    done: 'UNINSTALLED',
    failed: 'UNINSTALL_FAILED',
  },
};

const forced = (asked: EventType, queued: EventType): RequestEvents => ({
  asked,
  queued,
  done: 'FORCE_RUN_SUCCEEDED',
  failed: 'FORCE_RUN_FAILED',
});

const DRY_RUN: RequestEvents = {
  asked: 'TRIGGER_DEPLOY_DRY_RUN',
  queued: 'DRY_RUN',
  done: 'DEPLOYED_DRY_RUN',
  failed: 'DEPLOYED_DRY_RUN_FAILED',
};

const OF_EVENT: Record<RunEvent, RequestEvents> = {
  CRON: forced('TRIGGER_FORCE_RUN', 'FORCE_RUN_QUEUED'),
  START: forced('TRIGGER_FORCE_RUN_DEPLOY', 'FORCE_RUN_QUEUED_DEPLOY'),
  STOP: forced('TRIGGER_FORCE_RUN_STOP', 'FORCE_RUN_QUEUED_STOP'),
  DELETE: forced('TRIGGER_FORCE_RUN_DELETE', 'FORCE_RUN_QUEUED_DELETE'),
  PLAN: DRY_RUN,
  DIFF: DRY_RUN,
  FORCE_UNLOCK: {
    asked: 'TRIGGER_TERRAFORM_FORCE_UNLOCK',
    queued: null,
    done: 'TERRAFORM_FORCE_UNLOCK_SUCCEEDED',
    failed: 'TERRAFORM_FORCE_UNLOCK_FAILED',
  },
  MIGRATE_STATE: {
    asked: 'TRIGGER_TERRAFORM_MIGRATE_STATE',
    queued: null,
    done: 'TERRAFORM_MIGRATE_STATE_SUCCEEDED',
    failed: 'TERRAFORM_MIGRATE_STATE_FAILED',
  },
};

/** Returns the event of a RUN, which all of its services share. */
export const eventOfRun = (services: Pick<ServiceSnapshot, 'event'>[]): RunEvent => {
  const event = services[0]?.event;
  if (!event) throw new Error('A request to run something names what.');
  return event;
};

/** Returns the names of the audit events of a request. */
export const requestEventsOf = (action: DeploymentAction, services: Pick<ServiceSnapshot, 'event'>[]): RequestEvents =>
  action === 'RUN' ? OF_EVENT[eventOfRun(services)] : OF_ACTION[action];

const SUB_ACTIONS: Partial<Record<RunEvent, string>> = {
  PLAN: 'TERRAFORM_PLAN_ONLY',
  FORCE_UNLOCK: 'TERRAFORM_FORCE_UNLOCK_STATE',
  MIGRATE_STATE: 'TERRAFORM_MIGRATE_STATE',
};

/**
 * Returns `sub_action` of a service in a request (docs/contributing/rules.md, *Status*): the command of Terraform, or NONE for every other
 * kind.
 */
export function subActionOf(action: DeploymentAction, service: Pick<ServiceSnapshot, 'kind' | 'event'>): string {
  if (service.event) return SUB_ACTIONS[service.event] ?? 'NONE';
  const { subActions } = factsOf(service.kind);
  if (!subActions) return 'NONE';
  if (action === 'DEPLOY') return subActions.DEPLOY;
  return action === 'DELETE' || action === 'UNINSTALL' ? subActions.REMOVE : 'NONE';
}

const TRIGGER_ACTIONS: Record<string, string> = {
  TERRAFORM_PLAN_ONLY: 'DEPLOY_DRY_RUN',
  TERRAFORM_FORCE_UNLOCK_STATE: 'TERRAFORM_FORCE_UNLOCK',
  TERRAFORM_MIGRATE_STATE: 'TERRAFORM_MIGRATE_STATE',
};

/** Returns `trigger_action` of an execution in histories, by the sub-action of its first service; a forced job event is a deploy there. */
export const triggerActionOf = (action: string, subAction: string | undefined): string =>
  action === 'RUN' ? (TRIGGER_ACTIONS[subAction ?? ''] ?? 'DEPLOY') : action;
