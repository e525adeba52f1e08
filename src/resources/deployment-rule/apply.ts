import { isOn, lastEdge } from '#kernel/running-hours.ts';
import { findMakerPrincipal } from '#platform/access/makers.ts';
import { permits } from '#platform/access/principal.ts';
import { inTransaction, systemContext, type Context, type Platform } from '#platform/context.ts';
import { nextLook, toHours } from '#resources/deployment-rule/hours.ts';
import {
  findEnvironmentRule,
  listDue,
  listServicesToSwitch,
  setNextLook,
  type EnvironmentRuleRow,
} from '#resources/deployment-rule/queries.ts';
import { environmentTarget, type EnvironmentTarget } from '#resources/environment/target.ts';

/** Requests that services of an environment start or stop, as they were released. */
export type SwitchServices = (
  context: Context,
  environment: EnvironmentTarget,
  trigger: 'REDEPLOY' | 'STOP',
  serviceIds: string[],
) => Promise<unknown>;

/**
 * Stops environments whose hours have ended and starts those whose hours have begun. What counts is whether the hours are on now: after a
 * downtime that is made true once, however often they changed meanwhile. An environment that is so already is left alone.
 */
export async function applyDeploymentRules(
  platform: Platform,
  signal: AbortSignal,
  submit: SwitchServices,
): Promise<void> {
  for (const due of await listDue(platform.db, platform.clock.now())) {
    if (signal.aborted) return;
    try {
      await inTransaction(systemContext(platform, 'deployment rule'), (context) => applyRule(context, due, submit));
    } catch (error) {
      platform.log.warn(
        { err: error, environmentId: due.environment_id },
        'cannot apply a deployment rule; it is tried again',
      );
    }
  }
}

async function applyRule(
  context: Context,
  due: { environment_id: string; organization_id: string },
  submit: SwitchServices,
): Promise<void> {
  // The environment's lock lets one process do it, and keeps the rule as it is until the commit.
  const environment = await environmentTarget.find(context.db, due.environment_id, [due.organization_id], {
    lock: true,
  });
  if (!environment || environment.deleting || environment.cluster_locked_at) return;
  const rule = await findEnvironmentRule(context.db, environment, environment.id);
  const now = context.clock.now();
  if (!rule?.next_at || rule.next_at > now) return;
  if (await mayStillSwitch(context, environment, rule)) await switchServices(context, environment, rule, now, submit);
  else
    context.log.warn(
      { environmentId: environment.id, ruleId: rule.id },
      'a deployment rule is not applied: its maker, or the token that they set its hours with, may not deploy there any more; a member who may deploy there must save the rule again',
    );
  await setNextLook(context.db, environment, rule.id, nextLook(rule, now));
}

/** Tells whether the maker of a rule's hours, with the token that they used, may still deploy the environment. */
async function mayStillSwitch(context: Context, environment: EnvironmentTarget, rule: EnvironmentRuleRow) {
  if (rule.set_by === null) return true;
  const maker = await findMakerPrincipal(context, environment, { userId: rule.set_by, tokenId: rule.set_with });
  return maker !== undefined && permits(maker, 'environment.deploy', environment);
}

async function switchServices(
  context: Context,
  environment: EnvironmentTarget,
  rule: EnvironmentRuleRow,
  now: Date,
  submit: SwitchServices,
) {
  const hours = toHours(rule);
  const since = lastEdge(hours, now);
  if (!since) return;
  const on = isOn(hours, now);
  const ids = await listServicesToSwitch(context.db, environment, environment.id, on ? 'stopped' : 'running', since);
  if (ids.length === 0) return;
  // What is started again is the version that ran; a newer commit waits for a request.
  await submit(context, environment, on ? 'REDEPLOY' : 'STOP', ids);
}
