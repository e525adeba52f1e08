import { repositoryKey } from '#services/capabilities/service/git-webhook/service.ts';
import type { Kind } from '#services/kind.ts';
import type { GitSource } from '#services/sources/git.ts';

/** Repository of a service's configuration. */
export interface ServiceRepository {
  source: GitSource;
  /** Key of the repository, as `git_webhook.repository` has it. */
  repository: string;
  /** Repository of the values of a Helm service. */
  isValues: boolean;
}

/** Returns the repositories that a configuration names; none for a kind that is not built from git. */
export function repositoriesOf(kind: Kind | undefined, spec: unknown): ServiceRepository[] {
  const { gitSource, commits } = kind?.capabilities ?? {};
  return (commits?.of ?? [undefined]).flatMap((of) => {
    const source = gitSource?.(spec, of);
    return source ? [{ source, repository: repositoryKey(source), isValues: of === 'values' }] : [];
  });
}
