import type { ClusterRuntimes, WorkloadIdentity } from '#runtimes/runtime.ts';
import type { Platform } from '#platform/context.ts';
import { findPrograms } from '#runtimes/tools/terraform/programs.ts';
import { createRepositoryReader } from '#services/sources/repository-reader.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import { terraformHooks } from '#services/kinds/terraform/index.ts';
import { createStateServer, type StateServer } from '#services/terraform-state/index.ts';

/** Finds the programs of this machine that can run Terraform services. */
export const machinePrograms = (settings: { terraformPrograms: string }) => () =>
  findPrograms(settings.terraformPrograms);

/** Address to listen on for runs that come from another machine, on any of the networks of this one. */
const EVERY_ADDRESS = '0.0.0.0';

/** Serves the states of Terraform services to the runs that this process starts. */
export const createStates = (platform: Platform): StateServer =>
  createStateServer(platform, {
    port: platform.settings.terraformStatePort,
    publicUrl: platform.settings.terraformStateUrl,
  });

/** Listens from the start where a URL leads runs to any of several processes. One that cannot is reported; its own runs are refused. */
export async function listenForStates({ settings, log }: Platform, states: StateServer): Promise<void> {
  if (!settings.terraformStateUrl) return;
  await states.listen(EVERY_ADDRESS).catch((error: unknown) => {
    log.error({ err: error }, 'runs of Terraform do not reach their states by this process');
  });
}

/** Creates the hooks of Terraform services that need this machine. */
export const createTerraformHooks = (
  platform: Platform,
  states: StateServer,
  {
    sources,
    pretends,
    runtimes,
  }: {
    sources: OrganizationSources;
    /** Returns whether deployments on a runtime ask no repository. */
    pretends(runtime: string): boolean;
    runtimes: ClusterRuntimes;
  },
) =>
  terraformHooks({
    states,
    programs: machinePrograms(platform.settings),
    repositoriesFor: (runtime) => (pretends(runtime) ? null : createRepositoryReader(sources)),
    hostAddress: async (cluster, identity: WorkloadIdentity) => {
      if (platform.settings.terraformStateUrl) return EVERY_ADDRESS;
      return (await (await runtimes.runtimeOf(cluster)).hostAddress?.(identity)) ?? '127.0.0.1';
    },
  });
