import { invalidField } from '#kernel/errors.ts';
import { factsOf, kindsWith } from '#kernel/kinds.ts';
import { OneOf, Type, type Static } from '#platform/http/schema.ts';
import {
  canShare,
  installationReason,
  isShared,
  SHARED_MEASURES,
  SHARED_NUMBERS,
} from '#resources/alert-rule/shared-measures.ts';
import { OPERATORS, type Threshold } from '#resources/alert-rule/threshold.ts';

/** Conditions by the name in `condition.promql`, with what is true of a service, or of what services share. */
export const MEASURES = {
  deployment_failed: 'its last deployment has failed',
  service_not_ready: 'instances are not ready',
  job_failed: 'its last run has failed',
  backup_failed: 'its last backup has failed',
  certificate_days_left: 'a certificate is about to expire',
  cpu_percent: 'its CPU is beyond the threshold',
  memory_percent: 'its memory is beyond the threshold',
  restarts: 'its instances restart',
  backup_age_hours: 'its last backup is too old',
  requests_per_second: 'its requests are beyond the threshold',
  error_percent: 'too many of its answers are 5xx',
  latency_p95_ms: 'its answers are slow',
  ...SHARED_MEASURES,
} as const;

/** Name of a condition in `MEASURES`. */
export type Measure = keyof typeof MEASURES;

/** Names of all conditions. */
const MEASURE_NAMES = Object.keys(MEASURES) as Measure[];

/** Condition of a rule as the API takes it. */
export const Condition = Type.Object({
  kind: OneOf(['CUSTOM', 'BUILT'], {
    description: 'BUILT. CUSTOM is refused: no Prometheus is asked, so that free expressions cannot be evaluated.',
  }),
  operator: Type.Optional(OneOf(OPERATORS)),
  threshold: Type.Optional(
    Type.Number({ description: 'For measures that are numbers, where it is required; 0 elsewhere.' }),
  ),
  function: Type.Optional(OneOf(['NONE', 'AVG', 'MAX', 'MIN', 'SUM', 'COUNT'])),
  promql: Type.String({
    maxLength: 10_000,
    description: `Name of what is measured: ${MEASURE_NAMES.join(', ')}.`,
  }),
});
export type Condition = Static<typeof Condition>;

const PERCENT: Threshold = {
  operators: ['ABOVE', 'ABOVE_OR_EQUAL', 'BELOW', 'BELOW_OR_EQUAL'],
  least: 0,
  most: 10_000,
  unit: 'percent of the limit of all instances together from 0 to 10000, such as 90',
};

/** Measures that are numbers. The others are true or false. */
const NUMBERS: Partial<Record<Measure, Threshold>> = {
  certificate_days_left: {
    operators: ['BELOW'],
    least: 0,
    most: 365,
    unit: 'days from 0, for certificates that have expired, to 365, such as 14',
  },
  cpu_percent: PERCENT,
  memory_percent: PERCENT,
  restarts: {
    operators: ['ABOVE', 'ABOVE_OR_EQUAL'],
    least: 0,
    most: 1_000,
    unit: 'restarts within ten minutes from 0 to 1000, such as 3',
  },
  backup_age_hours: {
    operators: ['ABOVE'],
    least: 1,
    most: 8_760,
    unit: 'hours since the last backup from 1 to 8760, such as 26',
  },
  requests_per_second: {
    operators: PERCENT.operators,
    least: 0,
    most: 1_000_000,
    unit: 'requests per second from 0 to 1000000, such as 100',
  },
  error_percent: {
    operators: ['ABOVE', 'ABOVE_OR_EQUAL'],
    least: 0,
    most: 100,
    unit: 'percent of the answers from 0 to 100, such as 5',
  },
  latency_p95_ms: {
    operators: ['ABOVE', 'ABOVE_OR_EQUAL'],
    least: 1,
    most: 29_999,
    unit: 'milliseconds within which 95 of 100 requests are answered from 1 to 29999, such as 500',
  },
  ...SHARED_NUMBERS,
};

const WITH_WEB = kindsWith('settings').filter((kind) => factsOf(kind).settings!.includes('web'));
/** Measures of requests, which the proxies of machines count. */
const OF_REQUESTS: readonly Measure[] = ['requests_per_second', 'error_percent', 'latency_p95_ms'];

/** Kinds of services that can fulfil a condition, where not all can. Databases are no targets: they are watched with their environment. */
const KINDS: Partial<Record<Measure, readonly string[]>> = {
  job_failed: kindsWith('scheduled'),
  backup_failed: [],
  backup_age_hours: [],
  cpu_percent: kindsWith('longRunning'),
  memory_percent: kindsWith('longRunning'),
  restarts: kindsWith('longRunning'),
  certificate_days_left: WITH_WEB,
  ...Object.fromEntries(OF_REQUESTS.map((measure) => [measure, WITH_WEB])),
};

/** Target of a condition. */
export interface ConditionTarget {
  /** Kind of service, CRONJOB, CLUSTER or ENVIRONMENT. */
  type: string;
  /** Runtime of its cluster. */
  runtime: string;
  /** True if its organization is the first one of the installation. */
  isOperators: boolean;
}

/** Returns whether a target can fulfil a condition. */
function canHold(measure: Measure, { type, runtime, isOperators }: ConditionTarget): boolean {
  if (isShared(measure)) return canShare(measure, type, runtime, isOperators);
  // Instances are counted where a cluster is followed (docs/decisions/0092-a-cluster-is-followed.md).
  if (measure === 'service_not_ready' && runtime !== 'kubernetes') return false;
  if (OF_REQUESTS.includes(measure) && runtime === 'kubernetes') return false;
  return type === 'CLUSTER' || type === 'ENVIRONMENT' || (KINDS[measure]?.includes(kindOf(type)) ?? true);
}

/** Returns the kind of a target that is a service: jobs have two names. */
export const kindOf = (type: string): string => type.replace(/^CRON(?=JOB$)/, '');

/** Throws 400 for a condition that its target can never fulfil. */
export function checkCanHold(measure: Measure, target: ConditionTarget): void {
  if (canHold(measure, target)) return;
  const { type, runtime, isOperators } = target;
  const fitting = MEASURE_NAMES.filter((name) => canHold(name, target));
  throw invalidField(
    'condition.promql',
    `must be one of ${fitting.join(', ')} for a target of type ${type} on a cluster whose runtime is ${runtime}: ${installationReason(measure, isOperators) ?? `${measure} is never true there`}`,
  );
}

/** Returns the measure of a condition; 400 that names the field where the condition cannot be evaluated. */
export function measureOf(condition: Condition): Measure {
  const { promql, kind, function: fold = 'NONE', operator = 'NONE', threshold } = condition;
  if (kind !== 'BUILT')
    throw invalidField(
      'condition.kind',
      `must be BUILT, with one of these names in condition.promql: ${MEASURE_NAMES.join(', ')}; free expressions need a Prometheus, which this installation does not ask`,
    );
  const measure = MEASURE_NAMES.find((name) => name === promql);
  if (!measure)
    throw invalidField(
      'condition.promql',
      `must be one of ${MEASURE_NAMES.join(', ')}: other expressions are not evaluated`,
    );
  if (fold !== 'NONE')
    throw invalidField('condition.function', `must be NONE: ${measure} is compared for each thing by itself`);
  const number = NUMBERS[measure];
  if (number) {
    if (!number.operators.includes(operator))
      throw invalidField('condition.operator', `must be ${number.operators.join(' or ')} for ${measure}`);
    if (threshold === undefined || threshold < number.least || threshold > number.most)
      throw invalidField('condition.threshold', `must be a number of ${number.unit}`);
    return measure;
  }
  if (operator !== 'NONE')
    throw invalidField('condition.operator', `must be NONE for ${measure}, which is true or false`);
  if (threshold !== undefined && threshold !== 0)
    throw invalidField('condition.threshold', `is not allowed for ${measure}, which is true or false`);
  return measure;
}

const MOST_SECONDS = 7 * 86_400;

/** Returns the seconds of an ISO 8601 duration; 400 for another text, parts of a second, or above 7 days. */
export function secondsOf(text: string): number {
  const seconds = fixedSecondsOf(text);
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > MOST_SECONDS)
    throw invalidField(
      'for_duration',
      'must be an ISO 8601 duration of weeks, days, hours, minutes and whole seconds up to P7D, such as PT5M',
    );
  return seconds;
}

/** Returns the seconds of an ISO 8601 duration, NaN for another text and for years and months, whose length varies. */
function fixedSecondsOf(text: string): number {
  try {
    const duration = Temporal.Duration.from(text);
    const days = duration.weeks * 7 + duration.days;
    return duration.with({ weeks: 0, days }).total('seconds');
  } catch (error) {
    if (error instanceof RangeError) return NaN;
    throw error;
  }
}
