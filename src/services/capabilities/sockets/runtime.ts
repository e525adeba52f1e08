import { AppError, badGateway, badRequest, conflict } from '#kernel/errors.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/sockets/needs.ts';
import type { ServiceTarget } from '#services/service/target.ts';
import { RuntimeError, type Handle, type InstanceEndpoints, type Runtime } from '#runtimes/runtime.ts';

/** How long a runtime may take to tell where instances are, in milliseconds. */
const ASK_MS = 15_000;

/** The runtime of a service that was deployed, and what it is known by there. 409 where it was not. */
export async function deployedOn(
  needs: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  service: ServiceTarget,
): Promise<{ runtime: Runtime; handle: Handle }> {
  if (service.handle === null) throw conflict(`${service.name} does not run: deploy it first.`);
  return { runtime: await runtimeOf(needs, service), handle: service.handle as unknown as Handle };
}

/** Returns the runtime of a service's cluster. Throws `OnOtherMachine` where another machine has it, and an error for people where it is away. */
export async function runtimeOf(
  needs: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  service: ServiceTarget,
): Promise<Runtime> {
  try {
    return await needs.runtimeOf({ id: service.cluster_id, runtime: service.cluster_runtime });
  } catch (error) {
    throw toAppError(error);
  }
}

/** How the ports of its instances are reached. 400 on clusters where they are not, 502 where the cluster does not tell in time. */
export async function endpointsOf(
  needs: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  service: ServiceTarget,
): Promise<InstanceEndpoints[]> {
  const { runtime, handle } = await deployedOn(needs, service);
  if (!runtime.endpoints) throw unsupported(service, 'ports of instances cannot be reached');
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(badGateway(`The cluster did not answer within ${ASK_MS / 1000} s.`)), ASK_MS);
  try {
    return await Promise.race([runtime.endpoints(handle), late]);
  } catch (error) {
    throw toAppError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** 400: clusters of this runtime cannot do it. */
export const unsupported = (service: ServiceTarget, what: string): AppError =>
  badRequest(`${service.cluster_name}: ${what} on clusters of the runtime ${service.cluster_runtime}.`);

/** An error of a runtime as clients are told it: what cannot be is 400, what is not now 409, what does not answer 502. */
export function toAppError(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  if (error.code === 'refused') return badRequest(error.message);
  if (error.code === 'failed') return new AppError('conflict', error.message, { cause: error });
  return badGateway(`The cluster did not do it: ${error.message}`, error);
}
