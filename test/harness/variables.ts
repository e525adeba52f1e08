import type { FrozenVariable } from '#deployments/model/variables.ts';
import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { freezeVariables } from '#services/capabilities/variables/index.ts';

/** Returns all variables that a service sees, as a snapshot keeps them: written as JSON and read again. */
export async function freezeSeen(context: Context, scope: Scope, environmentId: string, serviceId: string) {
  const { shared, own } = await freezeVariables(context, scope, environmentId, [serviceId]);
  return JSON.parse(JSON.stringify([...shared, ...(own.get(serviceId) ?? [])])) as FrozenVariable[];
}
