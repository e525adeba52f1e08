import path from 'node:path';
import { createImages } from '#app/images.ts';
import { createStates, createTerraformHooks } from '#app/terraform.ts';
import type { Base } from '#app/install.ts';
import type { Runtimes } from '#app/runtimes.ts';
import type { createSources } from '#app/sources.ts';
import { DeploymentWorker } from '#deployments/executor/worker.ts';
import { resolveVariables, type FrozenVariable } from '#deployments/model/variables.ts';
import { noTracer, type Tracer } from '#platform/telemetry/index.ts';
import { readExternalSecrets } from '#resources/secret-manager-access/index.ts';
import { endProcessesIn } from '#runtimes/tools/left-behind.ts';
import { createMask } from '#runtimes/tools/secrets-mask.ts';
import { thawVariables, withOutputs } from '#services/capabilities/variables/index.ts';
import type { StateServer } from '#services/terraform-state/index.ts';
import { DEPLOYMENTS_BY_KIND, HOOKS_BY_KIND } from '#services/mount.ts';

/** The worker with everything that the engine is given (deployments/executor/engine.ts). */
export function createWorker(
  base: Pick<Base, 'settings' | 'platform' | 'engineDatabase' | 'directConfig' | 'nodeId' | 'installation'>,
  runtimes: Pick<Runtimes, 'get'>,
  sources: ReturnType<typeof createSources>,
  tracer: Tracer = noTracer,
  states: StateServer = createStates(base.platform),
): DeploymentWorker {
  const { settings } = base;
  const platform = { ...base.platform, db: base.engineDatabase.db };
  const runtimeOf = (cluster: { runtime: string }) => runtimes.get(cluster.runtime);
  return new DeploymentWorker({
    platform,
    directConfig: base.directConfig,
    nodeId: base.nodeId,
    installation: base.installation,
    kinds: DEPLOYMENTS_BY_KIND,
    runtimeOf,
    sources: { ...sources, ...createImages(base.platform) },
    tracer,
    hooks: { ...HOOKS_BY_KIND, TERRAFORM: createTerraformHooks(platform, states, sources, runtimeOf) },
    expand: async (context, organizationId, service, deployment) => {
      const frozen = await withOutputs(context, organizationId, service.variables as FrozenVariable[], deployment);
      const records = await thawVariables(context, organizationId, frozen);
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
    makeMask: (secrets) => {
      const mask = createMask(secrets);
      return (text) => mask.push(text) + mask.flush();
    },
    workDirectory: path.join(settings.dataDir, 'checkouts'),
    endProcessesIn,
    slots: {
      deployments: settings.workerSlots,
      builds: settings.buildSlots,
      perOrganization: settings.organizationSlots,
    },
  });
}
