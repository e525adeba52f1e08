import { inSnapshot, type Context } from '#platform/context.ts';
import { waitForEnd } from '#deployments/index.ts';
import type { EnvironmentTarget } from '#resources/environment/index.ts';
import { statusOfEnvironment } from '#services/capabilities/environment/actions/request.ts';
import { requestOf } from '#services/capabilities/service/actions/settle.ts';

/** Waits for the request that an action made, or that a status is of, and answers the status then (`?wait=`). */
export async function settleEnvironment(
  call: Context & { target: EnvironmentTarget; signal: AbortSignal },
  answer: unknown,
  seconds: number,
) {
  const id = requestOf(answer);
  if (id) await waitForEnd(call.db, call.target, id, seconds, call.signal);
  return (await inSnapshot(call, (inside) => statusOfEnvironment(inside, call.target))) ?? answer;
}
