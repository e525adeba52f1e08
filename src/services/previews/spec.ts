import type { Kind } from '#services/kind.ts';
import type { GitSource } from '#services/sources/git.ts';

type Spec = Record<string, unknown>;

/** Returns a configuration with other sources. */
function withSources(kind: Kind, spec: Spec, change: (source: GitSource) => GitSource): Spec {
  const { mapGitSources, gitSource } = kind.capabilities ?? {};
  if (mapGitSources) return mapGitSources(spec, change) as Spec;
  const source = gitSource?.(spec);
  return source ? { ...spec, git_repository: change(source) } : spec;
}

/** Returns a configuration that a push deploys no longer: only its pull request deploys a preview. */
function withoutAutoDeploy(spec: Spec): Spec {
  const config = spec.auto_deploy_config as object | undefined;
  return {
    ...spec,
    ...('auto_deploy' in spec ? { auto_deploy: false } : {}),
    ...(config ? { auto_deploy_config: { ...config, auto_deploy: false } } : {}),
  };
}

/** Returns the configuration of a service in a preview. `branchOf` names the branch that a source has there. */
export const previewSpec = (kind: Kind, spec: Spec, branchOf: (source: GitSource) => string): Spec =>
  withSources(kind, withoutAutoDeploy(spec), (source) => ({ ...source, branch: branchOf(source) }));
