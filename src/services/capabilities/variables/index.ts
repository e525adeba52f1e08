import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import type { FrozenVariable } from '#deployments/model/variables.ts';

export async function freezeVariables(_context: Context, _scope: Scope, _environmentId: string, serviceIds: string[]): Promise<Map<string, FrozenVariable[]>> {
  return new Map(serviceIds.map((id) => [id, []]));
}

export async function thawVariables(_context: Context, _organizationId: string, frozen: FrozenVariable[]): Promise<FrozenVariable[]> {
  return frozen;
}
