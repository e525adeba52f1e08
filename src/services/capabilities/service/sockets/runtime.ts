import { AppError, badGateway, badRequest, conflict, invalidField } from '#kernel/errors.ts';
import type { SocketCall } from '#platform/sockets/index.ts';
import type { ServiceSocketNeeds } from '#services/capabilities/service/sockets/needs.ts';
import { clusterOf, type ServiceTarget } from '#services/service/target.ts';
import { RuntimeError, type Handle, type InstanceEndpoints, type Runtime } from '#runtimes/runtime.ts';

/** Milliseconds that a runtime may take to answer a question. */
const ASK_MS = 15_000;

/** Returns the runtime and the handle of a deployed service. Throws 409 if it is not deployed. */
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
    return await needs.runtimeOf(clusterOf(service));
  } catch (error) {
    throw toAppError(error);
  }
}

/** Waits for the answer of a cluster. Throws 502 if it does not come in time. */
export async function inTime<T>(answer: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(badGateway(`The cluster did not answer within ${ASK_MS / 1000} s.`)), ASK_MS);
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    throw toAppError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Throws 400 where `service_type` is not the kind of the service. */
export function checkKind({ target, query }: SocketCall<ServiceTarget, { service_type?: string }>): void {
  if (query.service_type !== undefined && query.service_type !== target.kind)
    throw invalidField('service_type', `must be ${target.kind}, which the service is`);
}

/**
 * Returns the addresses of the ports of a service's instances. Throws 400 on clusters where ports are not reachable, and 502 if the cluster
 * does not answer in time.
 */
export async function endpointsOf(
  needs: Pick<ServiceSocketNeeds, 'runtimeOf'>,
  service: ServiceTarget,
): Promise<InstanceEndpoints[]> {
  const { runtime, handle } = await deployedOn(needs, service);
  if (!runtime.endpoints) throw unsupported(service, 'ports of instances cannot be reached');
  return inTime(runtime.endpoints(handle));
}

/** Creates the 400 for an operation that clusters of this runtime do not support. */
export const unsupported = (service: ServiceTarget, what: string): AppError =>
  badRequest(`${service.cluster_name}: ${what} on clusters of the runtime ${service.cluster_runtime}.`);

/** Turns an error of a runtime into one for clients: 400 if the runtime refuses, 409 if it fails, 502 if it does not answer. */
export function toAppError(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  if (error.code === 'refused') return badRequest(error.message);
  if (error.code === 'failed') return new AppError('conflict', error.message, { cause: error });
  return badGateway(`The cluster did not do it: ${error.message}`, error);
}
