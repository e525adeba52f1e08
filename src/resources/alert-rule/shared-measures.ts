import type { Threshold } from '#resources/alert-rule/threshold.ts';

/** Measures of what services share: tokens, machines, the queue and the copies of the installation, with what is true of one that is found. */
export const SHARED_MEASURES = {
  api_token_days_left: 'they are about to expire, or have expired',
  git_token_days_left: 'they are about to expire, or have expired',
  cluster_credentials_days_left: 'the credentials of its kubeconfig are about to expire, or have expired',
  disk_used_percent: 'its disk is beyond the threshold',
  deployments_waiting: 'too many deployments wait',
  deployment_waiting_seconds: 'a deployment waits for too long',
  queue_stuck: 'something in the queue cannot end by itself',
  copy_age_hours: 'its last copy elsewhere is too old',
  copy_check_age_days: 'the last copy that was found good is too old',
} as const;

export type SharedMeasure = keyof typeof SHARED_MEASURES;

export const isShared = (measure: string): measure is SharedMeasure => Object.hasOwn(SHARED_MEASURES, measure);

/** Names of what fulfils a measure, for messages. */
const SUBJECTS: Record<SharedMeasure, string> = {
  api_token_days_left: 'these API tokens',
  git_token_days_left: 'these git tokens',
  cluster_credentials_days_left: 'this cluster',
  disk_used_percent: 'this machine',
  deployments_waiting: 'this queue',
  deployment_waiting_seconds: 'these environments',
  queue_stuck: 'this cluster',
  copy_age_hours: 'the installation',
  copy_check_age_days: 'the installation',
};

/** Returns how a message names what fulfils a measure. */
export const subjectsOf = (measure: string): string => (isShared(measure) ? SUBJECTS[measure] : 'these services');

const daysLeft = (what: string): Threshold => ({
  operators: ['BELOW'],
  least: 0,
  most: 365,
  unit: `days from 0, for ${what} that have expired, to 365, such as 14`,
});

/** Thresholds of the measures that are numbers. */
export const SHARED_NUMBERS: Partial<Record<SharedMeasure, Threshold>> = {
  api_token_days_left: daysLeft('tokens'),
  git_token_days_left: daysLeft('tokens'),
  cluster_credentials_days_left: daysLeft('credentials'),
  disk_used_percent: {
    operators: ['ABOVE', 'ABOVE_OR_EQUAL'],
    least: 0,
    most: 99,
    unit: 'percent of the disk from 0 to 99, such as 85',
  },
  deployments_waiting: {
    operators: ['ABOVE', 'ABOVE_OR_EQUAL'],
    least: 0,
    most: 10_000,
    unit: 'deployments that wait from 0 to 10000, such as 10',
  },
  deployment_waiting_seconds: {
    operators: ['ABOVE'],
    least: 1,
    most: 604_800,
    unit: 'seconds that a deployment waits from 1 to 604800, such as 600',
  },
  copy_age_hours: {
    operators: ['ABOVE'],
    least: 1,
    most: 8_760,
    unit: 'hours since the last copy from 1 to 8760, such as 48',
  },
  copy_check_age_days: {
    operators: ['ABOVE'],
    least: 1,
    most: 365,
    unit: 'days since the last good check from 1 to 365, such as 15',
  },
};

/** Measures of the queue of an environment, too. All others are of the whole cluster or of more. */
const OF_ENVIRONMENTS: readonly SharedMeasure[] = ['deployments_waiting', 'deployment_waiting_seconds'];

/** Facts of the whole installation: other organizations than that of its operator learn nothing of them. */
const OF_INSTALLATION: readonly SharedMeasure[] = ['copy_age_hours', 'copy_check_age_days'];

/** Returns whether a target can fulfil a measure. `isOperators` says that it belongs to the first organization of the installation. */
export function canShare(measure: SharedMeasure, type: string, runtime: string, isOperators: boolean): boolean {
  if (OF_INSTALLATION.includes(measure) && !isOperators) return false;
  if (measure === 'cluster_credentials_days_left' && runtime !== 'kubernetes') return false;
  // The disks of a Kubernetes cluster are those of its nodes, which are no machines of the installation.
  if (measure === 'disk_used_percent' && runtime === 'kubernetes') return false;
  return type === 'CLUSTER' || (type === 'ENVIRONMENT' && OF_ENVIRONMENTS.includes(measure));
}

/** Returns why a measure is refused where that does not follow from its target alone. */
export const installationReason = (measure: string, isOperators: boolean): string | undefined =>
  isShared(measure) && OF_INSTALLATION.includes(measure) && !isOperators
    ? 'only rules of the first organization of the installation, which is that of its operator, watch the whole installation'
    : undefined;
