import type { Context } from '#platform/context.ts';
import type { Scope } from '#platform/database/index.ts';
import { noteConnectionEnd } from '#resources/cluster/index.ts';
import type { SharedMeasure } from '#resources/alert-rule/shared-measures.ts';

/** Stores what a measure of a cluster is read from, where no row has it in the clear yet. To be called before each evaluation. */
export async function prepareMeasure(
  context: Pick<Context, 'db' | 'vault'>,
  scope: Scope,
  measure: SharedMeasure,
  clusterId: string,
): Promise<void> {
  if (measure === 'cluster_credentials_days_left') await noteConnectionEnd(context, scope, clusterId);
}
