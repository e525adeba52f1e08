import path from 'node:path';
import { createImages } from '#services/images/registry-images.ts';
import { createStates, createTerraformHooks } from '#app/terraform.ts';
import type { Base } from '#app/install.ts';
import type { ClusterRuntimes } from '#runtimes/runtime.ts';
import { createPretendedSources } from '#services/sources/pretended-sources.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import { ExecutionWorker } from '#deployments/executions/worker.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { DeploymentWorker } from '#deployments/executor/worker.ts';
import { noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { refuseFullDisk } from '#housekeeping/index.ts';
import { refuseCluster } from '#resources/cluster/index.ts';
import { endProcessesIn } from '#runtimes/tools/left-behind.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { deleteOtherRoutedDomains, routeDomains } from '#services/capabilities/service/custom-domains/index.ts';
import { createExpand } from '#services/capabilities/variables/index.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import type { StateServer } from '#services/terraform-state/index.ts';
import { checkPublished } from '#services/ports/published-ports.ts';
import { DEPLOYMENTS_BY_KIND, HOOKS_BY_KIND } from '#services/mount.ts';

type EngineBase = Pick<
  Base,
  'settings' | 'platform' | 'engineDatabase' | 'directConfig' | 'nodeId' | 'installation'
> & {
  /** True if deployments on the fake runtime ask neither repositories nor registries elsewhere. */
  pretendsSources?: boolean;
};

/** The worker of deployments with everything that the engine is given (deployments/executor/engine.ts). */
export const createWorker = (...of: Parameters<typeof engineParts>): DeploymentWorker =>
  new DeploymentWorker(engineParts(...of));

/** The worker of what runs by schedules, with the same. */
export const createExecutionWorker = (...of: Parameters<typeof engineParts>): ExecutionWorker =>
  new ExecutionWorker(engineParts(...of), of[0].settings.workerSlots);

function engineParts(
  base: EngineBase,
  runtimes: ClusterRuntimes,
  sources: OrganizationSources,
  tracer: Tracer = noTracer,
  states: StateServer = createStates(base.platform),
): EngineParts {
  const { settings } = base;
  const platform = { ...base.platform, db: base.engineDatabase.db };
  const resolver = createResolver(settings.dnsServers);
  const real = { ...createImages(base.platform), ...sources };
  const pretended = createPretendedSources(real);
  const pretends = (runtime: string) => base.pretendsSources === true && runtime === 'fake';
  return {
    platform,
    directConfig: base.directConfig,
    nodeId: base.nodeId,
    installation: base.installation,
    kinds: DEPLOYMENTS_BY_KIND,
    checkPlace: (organizationId, clusterId) => refuseCluster(platform, organizationId, clusterId),
    checkPublished: (service, ports) => checkPublished(platform, service, ports),
    checkDisk: (organizationId) => refuseFullDisk(platform, base.nodeId, organizationId),
    runtimes,
    sourcesFor: (runtime) => (pretends(runtime) ? pretended : real),
    tracer,
    hooks: { ...HOOKS_BY_KIND, TERRAFORM: createTerraformHooks(platform, states, { sources, pretends, runtimes }) },
    expand: createExpand(),
    deleteOtherRoutes: deleteOtherRoutedDomains,
    routeDomains: (context, organizationId, service) => routeDomains(context, resolver, organizationId, service),
    makeMask: maskOf,
    workDirectory: path.join(settings.dataDir, 'checkouts'),
    endProcessesIn,
    slots: {
      deployments: settings.workerSlots,
      builds: settings.buildSlots,
      checkouts: settings.checkoutSlots,
      perOrganization: settings.organizationSlots,
    },
  };
}
