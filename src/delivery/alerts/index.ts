import { ALERT_CHANNEL, evaluateRule } from '#delivery/alerts/evaluate.ts';
import * as messages from '#delivery/alerts/message-queries.ts';
import * as rules from '#delivery/alerts/queries.ts';
import { claimDue, send } from '#delivery/alerts/send.ts';
import { BREAKER, type Breaker } from '#delivery/receivers/breaker.ts';
import { FairShare, SLOTS } from '#delivery/receivers/fair-share.ts';
import { GRACE_MS, RETRY_SCHEDULE_MS } from '#delivery/receivers/schedule.ts';
import type { Platform } from '#platform/context.ts';
import { WorkLoop } from '#platform/work/index.ts';
import type { RecurringTask } from '#platform/work/schedule.ts';
import type { Outgoing } from '#resources/alert-receiver/index.ts';

export { ALERT_REPORT } from '#delivery/alerts/message-queries.ts';
export { RULE_REPORT } from '#delivery/alerts/queries.ts';

/** Claims that end without a result, such as those of killed processes, beyond which a message is given up. */
const MOST_PICKUPS = 20;
const GIVEN_UP =
  'The message was given up: its sending was broken off again and again. The log of the server says why.';

export interface AlertDeliveryOptions {
  platform: Platform;
  nodeId: string;
  outgoing: Outgoing;
  /** Times, set by tests. */
  times?: {
    scheduleMs?: readonly number[];
    graceMs?: number;
    pollMs?: number;
    leaseSeconds?: number;
    breaker?: Breaker;
  };
}

/** Creates the loop that evaluates rules: each when it is due, by one process. */
export const createAlertEvaluation = (platform: Platform, nodeId: string, pollMs = 1_000) =>
  new WorkLoop<rules.RuleClaim>(
    {
      name: rules.RULE_REPORT.name,
      leaseSeconds: 15,
      slots: 4,
      pollMs,
      claim: rules.claimRules,
      renew: rules.renewRules,
      giveBack: rules.giveBackRule,
      run: (claim) => evaluateRule(platform, claim),
      fields: ({ id: ruleId }) => ({ ruleId }),
    },
    { platform, nodeId },
  );

/** Creates the loop that sends the messages of alerts, at least once each. */
export function createAlertDelivery({ platform, nodeId, outgoing, times = {} }: AlertDeliveryOptions) {
  const { pollMs = 2_000, leaseSeconds = 15 } = times;
  const options = { platform, outgoing, scheduleMs: RETRY_SCHEDULE_MS, graceMs: GRACE_MS, breaker: BREAKER, ...times };
  const calls = new FairShare<messages.MessageClaim>(({ receiver_id }) => receiver_id);
  return new WorkLoop<messages.MessageClaim>(
    {
      name: messages.ALERT_REPORT.name,
      leaseSeconds,
      slots: SLOTS,
      pollMs,
      channel: ALERT_CHANNEL,
      claim: (_, request) => calls.claim(request, (some, busy) => claimDue(options, some, busy)),
      renew: messages.renewMessages,
      giveBack: (db, claim, stoppedBy) => messages.giveBackMessage(db, claim, stoppedBy, leaseSeconds),
      run: (claim, lease) => calls.carryOut(claim, () => send(options, claim, lease)),
      attempts: {
        most: MOST_PICKUPS,
        of: ({ attempts, tries }) => attempts - tries,
        giveUp: async (claim) => {
          await messages.endMessage(platform.db, claim, GIVEN_UP);
          await messages.noteDelivery(platform.db, claim, GIVEN_UP);
        },
      },
      fields: ({ id, rule_id: ruleId }) => ({ message: id, ruleId }),
    },
    { platform, nodeId },
  );
}

/** Creates the loops that evaluate rules and send their messages. */
export const createAlertLoops = (options: AlertDeliveryOptions) => [
  createAlertDelivery(options),
  createAlertEvaluation(options.platform, options.nodeId),
];

/** Recurring tasks of alerts. */
export const ALERT_TASKS: RecurringTask[] = [
  {
    name: 'old-alert-messages',
    everySeconds: 3600,
    run: async ({ db }, signal) => {
      await messages.expireMessages(db, signal);
      await messages.removeOldMessages(db, signal);
    },
  },
];
