import { inSnapshot, type Context } from '#platform/context.ts';
import { waitForEnd } from '#deployments/index.ts';
import { statusOfService } from '#services/capabilities/service/actions/request.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** The request that was made, else the one that the status is of. */
export function requestOf(answer: unknown): string | null {
  const { requested, deployment_request_id } = answer as { requested?: string; deployment_request_id: string | null };
  return requested ?? deployment_request_id;
}

/** Waits for the request that an action made, or that a status is of, and answers the status then (`?wait=`). */
export async function settleService(
  context: Context,
  service: ServiceTarget,
  answer: unknown,
  seconds: number,
  signal: AbortSignal,
) {
  const id = requestOf(answer);
  if (id) await waitForEnd(context.db, service, id, seconds, signal);
  return (await inSnapshot(context, (inside) => statusOfService(inside, service))) ?? answer;
}
