import type { Context } from '#platform/context.ts';
import { environmentStatuses } from '#deployments/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import {
  placeOfEnvironment,
  submit,
  type ActionOptions,
  type Trigger,
} from '#services/capabilities/service/actions/request.ts';
import { refuseDeleting } from '#services/service/service.ts';

/** Requests an action on the named services of an environment, or on all. Skipped services stay out of a deployment of all. */
export async function actOnEnvironment(
  context: Context,
  environment: EnvironmentTarget,
  trigger: Trigger,
  serviceIds: string[] | null,
  options: ActionOptions = {},
) {
  refuseDeleting(environment);
  const requested = await submit(context, placeOfEnvironment(environment), trigger, serviceIds, options);
  return { ...(await statusOfEnvironment(context, environment)), requested };
}

export async function statusOfEnvironment(context: Context, environment: EnvironmentTarget) {
  return (await environmentStatuses(context.db, environment, [environment.id]))[0];
}
