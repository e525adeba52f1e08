import path from 'node:path';
import { refuseFullDisk } from '#app/disk-allowance.ts';
import { createImages } from '#app/images.ts';
import { createStates, createTerraformHooks } from '#app/terraform.ts';
import type { Base } from '#app/install.ts';
import type { Runtimes } from '#app/runtimes.ts';
import { createPretendedSources } from '#app/pretended-sources.ts';
import type { createSources } from '#app/sources.ts';
import { ExecutionWorker } from '#deployments/executions/worker.ts';
import type { EngineParts } from '#deployments/executor/engine.ts';
import { DeploymentWorker } from '#deployments/executor/worker.ts';
import { resolveVariables, type FrozenVariable } from '#deployments/model/variables.ts';
import { noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { refuseCluster } from '#resources/cluster/index.ts';
import { readExternalSecrets } from '#resources/secret-manager-access/index.ts';
import { endProcessesIn } from '#runtimes/tools/left-behind.ts';
import { maskOf } from '#kernel/secrets-mask.ts';
import { deleteOtherRoutedDomains, routeDomains } from '#services/capabilities/custom-domains/index.ts';
import { createThaw, thawVariables, withOutputs } from '#services/capabilities/variables/index.ts';
import { createResolver } from '#services/parts/resolver.ts';
import type { StateServer } from '#services/terraform-state/index.ts';
import { checkPublished } from '#services/parts/published-ports.ts';
import { DEPLOYMENTS_BY_KIND, HOOKS_BY_KIND } from '#services/mount.ts';

type EngineBase = Pick<
  Base,
  'settings' | 'platform' | 'engineDatabase' | 'directConfig' | 'nodeId' | 'installation'
> & {
  /** Whether deployments on the fake runtime ask neither repositories nor registries elsewhere. */
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
  runtimes: Pick<Runtimes, 'get'>,
  sources: ReturnType<typeof createSources>,
  tracer: Tracer = noTracer,
  states: StateServer = createStates(base.platform),
): EngineParts {
  const { settings } = base;
  const platform = { ...base.platform, db: base.engineDatabase.db };
  const resolver = createResolver(settings.dnsServers);
  const thawOnce = createThaw();
  const real = { ...createImages(base.platform), ...sources };
  const pretended = createPretendedSources(real);
  const pretends = (runtime: string) => base.pretendsSources === true && runtime === 'fake';
  const runtimeOf = (cluster: { runtime: string }) => runtimes.get(cluster.runtime);
  return {
    platform,
    directConfig: base.directConfig,
    nodeId: base.nodeId,
    installation: base.installation,
    kinds: DEPLOYMENTS_BY_KIND,
    checkPlace: (organizationId, clusterId) => refuseCluster(platform, organizationId, clusterId),
    checkPublished: (service, ports) => checkPublished(platform, service, ports),
    checkDisk: (organizationId) => refuseFullDisk(platform, base.nodeId, organizationId),
    runtimeOf,
    sourcesFor: (runtime) => (pretends(runtime) ? pretended : real),
    tracer,
    hooks: { ...HOOKS_BY_KIND, TERRAFORM: createTerraformHooks(platform, states, { sources, pretends, runtimeOf }) },
    expand: async (context, organizationId, service, deployment) => {
      const shared = await thawOnce(context, organizationId, deployment.shared as FrozenVariable[]);
      const own = await thawVariables(context, organizationId, service.variables as FrozenVariable[]);
      const records = await withOutputs(context, organizationId, [...shared, ...own], deployment);
      const resolved = resolveVariables(
        await readExternalSecrets(context, { organizationId }, records, deployment.signal),
      );
      return {
        variables: Object.fromEntries(resolved.variables.map(({ key, value }) => [key, value])),
        files: resolved.files,
        secrets: resolved.secrets,
        warnings: resolved.warnings,
      };
    },
    deleteOtherRoutes: deleteOtherRoutedDomains,
    routeDomains: (context, organizationId, service) => routeDomains(context, resolver, organizationId, service),
    makeMask: maskOf,
    workDirectory: path.join(settings.dataDir, 'checkouts'),
    endProcessesIn,
    slots: {
      deployments: settings.workerSlots,
      builds: settings.buildSlots,
      perOrganization: settings.organizationSlots,
    },
  };
}
