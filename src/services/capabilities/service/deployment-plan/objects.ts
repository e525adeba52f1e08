import { anySignal } from '#kernel/lease-signal.ts';
import type { Context } from '#platform/context.ts';
import {
  outputPathOf,
  type DeploymentPlace,
  type DeploymentPreview,
  type ServiceSnapshot,
} from '#deployments/index.ts';
import type { Snapshot } from '#deployments/model/snapshot.ts';
import { examineVariables } from '#deployments/model/variables.ts';
import { withholdSecrets } from '#deployments/model/withheld-secrets.ts';
import { isOfFork } from '#resources/environment/index.ts';
import { RuntimeError, type Handle, type ObjectChange, type Runtime, type WorkloadSpec } from '#runtimes/runtime.ts';
import type { PlanNeeds } from '#services/capabilities/service/deployment-plan/needs.ts';

/** Milliseconds that the cluster may take for all services of a plan. */
const ASK_MS = 10_000;
/** Services whose objects are compared in one plan; the plan of an environment with more does not ask for the others. */
const MOST_SERVICES = 50;
const ASKED_AT_ONCE = 4;

/** Changes of a service's objects, or the reason why they are not known. */
export type PlannedObjects = { changes: ObjectChange[] } | { unknown: string };

/** Returns what would change in the cluster, by service: of services that are deployed, on a cluster that can tell. */
export async function planObjects(
  context: Context,
  place: DeploymentPlace,
  needs: PlanNeeds,
  { snapshot, preview, signal }: { snapshot: Snapshot; preview: DeploymentPreview; signal: AbortSignal },
): Promise<Map<string, PlannedObjects>> {
  const planned = new Map<string, PlannedObjects>();
  const { cluster, handles } = preview;
  // The runtimes of machines cannot tell.
  if (snapshot.action !== 'DEPLOY' || cluster?.nodeId !== null) return planned;
  const runtime = await findRuntime(needs, { ...cluster, id: place.clusterId, nodeId: null });
  if (!runtime?.preview) return planned;
  const within = anySignal([signal, AbortSignal.timeout(ASK_MS)]);
  const foresee = async (service: ServiceSnapshot, handle: Handle): Promise<PlannedObjects | null> => {
    try {
      const spec = await workloadOf({ context, needs, snapshot, preview }, service, handle);
      return spec ? { changes: await runtime.preview!(spec, within) } : null;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RuntimeError)) throw error;
      return { unknown: within.aborted ? LATE : error.message };
    }
  };
  const left = snapshot.services.filter(({ serviceId }) => handles.has(serviceId)).entries();
  const foreseeRest = async () => {
    for (const [n, service] of left) {
      const { serviceId } = service;
      const objects = n < MOST_SERVICES ? await foresee(service, handles.get(serviceId)!) : { unknown: TOO_MANY };
      if (objects) planned.set(serviceId, objects);
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, foreseeRest));
  return planned;
}

const LATE = `The cluster did not answer within ${ASK_MS / 1000} s.`;
const TOO_MANY = `Only the first ${MOST_SERVICES} services of a plan are compared with the cluster: ask for the plan of the service.`;

/** Returns the runtime of a cluster; null if this process has none for it, or if it was never connected. */
async function findRuntime(
  { runtimeOf }: PlanNeeds,
  cluster: Parameters<PlanNeeds['runtimeOf']>[0],
): Promise<Runtime | null> {
  try {
    return await runtimeOf(cluster);
  } catch (error) {
    if (error instanceof RuntimeError) return null;
    throw error;
  }
}

interface Planning {
  context: Context;
  needs: PlanNeeds;
  snapshot: Snapshot;
  preview: DeploymentPreview;
}

/** Returns the workload without values of secrets; null if there is none, or if it is not known before the deployment. */
async function workloadOf(
  { context, needs, snapshot, preview }: Planning,
  service: ServiceSnapshot,
  { identity }: Handle,
): Promise<WorkloadSpec | null> {
  const kind = needs.kinds[service.kind];
  const planned = preview.plan.stages
    .flatMap(({ services }) => services)
    .find((one) => one.serviceId === service.serviceId);
  // What a kind opens is not read for a plan; an image that is to be built has no name yet.
  if (!kind?.deployable || needs.opens(service.kind) || !planned?.image || planned.failure) return null;
  const { organizationId, environmentId } = snapshot;
  const isFork = await isOfFork(context.db, { organizationId }, environmentId);
  const seen = [...(snapshot.shared ?? []), ...service.variables];
  const records = isFork ? withholdSecrets(seen) : seen;
  const { variables, files } = examineVariables(records.map((record) => ({ ...record, value: record.value ?? '' })));
  const { proxyDomain, builtInVariablePrefix } = context.settings;
  const expanded = {
    variables: Object.fromEntries(variables.map(({ key, value, isSecret }) => [key, isSecret ? '' : value])),
    files: files.map(({ path }) => ({ path, content: '' })),
    secrets: [],
  };
  const options = {
    proxyDomain,
    outputPath: outputPathOf(builtInVariablePrefix),
    registry: null,
    opened: {},
    bestEffort: false,
    fetched: null,
  };
  const deployable = await kind.deployable(service, identity, planned.image, expanded, options);
  // Helm compares charts itself (`Runtime.diff`).
  return deployable.type === 'workload' ? deployable : null;
}
