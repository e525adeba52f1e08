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

/** Serves the states of Terraform services to the runs that this process starts. */
export const createStates = (platform: Platform): StateServer =>
  createStateServer(platform, {
    port: platform.settings.terraformStatePort,
    publicUrl: platform.settings.terraformStateUrl,
  });

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
      // What leads here from another machine may come in anywhere.
      if (platform.settings.terraformStateUrl) return '0.0.0.0';
      return (await (await runtimes.runtimeOf(cluster)).hostAddress?.(identity)) ?? '127.0.0.1';
    },
  });
