/** docs/contributing/rules.md, *States* */
export const STATES = [
  'BUILDING',
  'BUILD_ERROR',
  'CANCELED',
  'CANCELING',
  'DELETED',
  'DELETE_ERROR',
  'DELETE_QUEUED',
  'DELETING',
  'DEPLOYED',
  'DEPLOYING',
  'DEPLOYMENT_ERROR',
  'DEPLOYMENT_QUEUED',
  'EXECUTING',
  'QUEUED',
  'READY',
  'RECAP',
  'RESTARTED',
  'RESTARTING',
  'RESTART_ERROR',
  'RESTART_QUEUED',
  'STOPPED',
  'STOPPING',
  'STOP_ERROR',
  'STOP_QUEUED',
  'UNAVAILABLE',
  'WAITING_DELETING',
  'WAITING_RESTARTING',
  'WAITING_RUNNING',
  'WAITING_STOPPING',
] as const;
export type State = (typeof STATES)[number];

/** Actions of a deployment on its services. RUN executes something of them and leaves them as they were. */
export const ACTIONS = ['DEPLOY', 'STOP', 'RESTART', 'DELETE', 'UNINSTALL', 'RUN'] as const;
export type DeploymentAction = (typeof ACTIONS)[number];

/** Actions that only take down: they begin on drained nodes as well. */
export const TAKE_DOWN = ['STOP', 'DELETE', 'UNINSTALL'] as const satisfies DeploymentAction[];

/** Events that RUN executes: an event of a job, a command on a Terraform service's state, or a diff of a chart. */
const RUN_EVENTS = ['CRON', 'START', 'STOP', 'DELETE', 'PLAN', 'FORCE_UNLOCK', 'MIGRATE_STATE', 'DIFF'] as const;
export type RunEvent = (typeof RUN_EVENTS)[number];

/**
 * Phases of a service in a deployment, whatever the action. The state's name that people see follows from action and phase; rules are about
 * phases (docs/contributing/engine.md, *States of a service in a deployment*).
 */
export const PHASES = [
  'queued',
  'waiting',
  'building',
  'active',
  'executing',
  'canceling',
  'succeeded',
  'failed',
  'buildFailed',
  'canceled',
] as const;
export type Phase = (typeof PHASES)[number];

/** Trigger that moves a service from phase to phase. */
export type Trigger = 'start' | 'build' | 'apply' | 'execute' | 'succeed' | 'fail' | 'cancel' | 'cancelled';

const FINAL: readonly Phase[] = ['succeeded', 'failed', 'buildFailed', 'canceled'];

/** Table of all transitions; docs/states.md draws it, and a test walks all of it. */
export const TRANSITIONS: Record<Trigger, Partial<Record<Phase, Phase>>> = {
  // Its deployment starts, its stage is not reached.
  start: { queued: 'waiting' },
  // Its stage starts and there is something to build.
  build: { waiting: 'building' },
  // Its stage starts with nothing to build, or the build or what was run before has ended.
  apply: { waiting: 'active', building: 'active', executing: 'active' },
  // A job or a Terraform run starts.
  execute: { queued: 'executing', waiting: 'executing', building: 'executing', active: 'executing' },
  succeed: { active: 'succeeded', executing: 'succeeded', canceling: 'succeeded' },
  fail: {
    queued: 'failed',
    waiting: 'failed',
    building: 'buildFailed',
    active: 'failed',
    executing: 'failed',
    canceling: 'failed',
  },
  // Something is under way that has to come to a safe point first; what has not started is cancelled at once.
  cancel: {
    queued: 'canceled',
    waiting: 'canceled',
    building: 'canceling',
    active: 'canceling',
    executing: 'canceling',
  },
  cancelled: {
    queued: 'canceled',
    waiting: 'canceled',
    building: 'canceled',
    active: 'canceled',
    executing: 'canceled',
    canceling: 'canceled',
  },
};
const NAMES: Record<
  DeploymentAction,
  Record<Exclude<Phase, 'canceling' | 'canceled' | 'building' | 'buildFailed' | 'executing'>, State>
> = {
  DEPLOY: {
    queued: 'DEPLOYMENT_QUEUED',
    waiting: 'WAITING_RUNNING',
    active: 'DEPLOYING',
    succeeded: 'DEPLOYED',
    failed: 'DEPLOYMENT_ERROR',
  },
  STOP: {
    queued: 'STOP_QUEUED',
    waiting: 'WAITING_STOPPING',
    active: 'STOPPING',
    succeeded: 'STOPPED',
    failed: 'STOP_ERROR',
  },
  RESTART: {
    queued: 'RESTART_QUEUED',
    waiting: 'WAITING_RESTARTING',
    active: 'RESTARTING',
    succeeded: 'RESTARTED',
    failed: 'RESTART_ERROR',
  },
  DELETE: {
    queued: 'DELETE_QUEUED',
    waiting: 'WAITING_DELETING',
    active: 'DELETING',
    succeeded: 'DELETED',
    failed: 'DELETE_ERROR',
  },
  UNINSTALL: {
    queued: 'DELETE_QUEUED',
    waiting: 'WAITING_DELETING',
    active: 'DELETING',
    succeeded: 'DELETED',
    failed: 'DELETE_ERROR',
  },
  RUN: {
    queued: 'QUEUED',
    waiting: 'WAITING_RUNNING',
    active: 'DEPLOYING',
    succeeded: 'DEPLOYED',
    failed: 'DEPLOYMENT_ERROR',
  },
};

/** Returns the state's name that the API shows. */
export function stateOf(action: DeploymentAction, phase: Phase): State {
  switch (phase) {
    case 'canceling':
      return 'CANCELING';
    case 'canceled':
      return 'CANCELED';
    case 'building':
      return 'BUILDING';
    case 'buildFailed':
      return 'BUILD_ERROR';
    case 'executing':
      return 'EXECUTING';
    default:
      return NAMES[action][phase];
  }
}

/** Returns the phase that a state stands for. */
export function phaseOf(action: DeploymentAction, state: State): Phase {
  const phase = PHASES.find((candidate) => stateOf(action, candidate) === state);
  if (!phase) throw new Error(`${state} is not a state of the action ${action}.`);
  return phase;
}

/** Returns the phase after a trigger, or undefined if the trigger means nothing in this phase. */
export const next = (phase: Phase, trigger: Trigger): Phase | undefined => TRANSITIONS[trigger][phase];

/** Returns the states that a trigger moves, each with its next state, for a conditional update. */
export const movesOf = (action: DeploymentAction, trigger: Trigger): { from: State; to: State }[] =>
  (Object.entries(TRANSITIONS[trigger]) as [Phase, Phase][]).map(([from, to]) => ({
    from: stateOf(action, from),
    to: stateOf(action, to),
  }));

export const isFinal = (action: DeploymentAction, state: State): boolean => FINAL.includes(phaseOf(action, state));

/** `status_details` of a status (docs/contributing/engine.md). */
export function detailsOf(action: DeploymentAction, state: State, subAction: string) {
  const shown = action === 'UNINSTALL' ? 'DELETE' : action === 'RUN' ? 'DEPLOY' : action;
  return { action: shown, status: STATUS_OF_PHASE[phaseOf(action, state)], sub_action: subAction };
}

const STATUS_OF_PHASE: Record<
  Phase,
  'QUEUED' | 'ONGOING' | 'EXECUTING' | 'SUCCESS' | 'ERROR' | 'CANCELING' | 'CANCELED'
> = {
  queued: 'QUEUED',
  waiting: 'QUEUED',
  building: 'ONGOING',
  active: 'ONGOING',
  executing: 'EXECUTING',
  canceling: 'CANCELING',
  succeeded: 'SUCCESS',
  failed: 'ERROR',
  buildFailed: 'ERROR',
  canceled: 'CANCELED',
};
