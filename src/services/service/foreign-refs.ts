import { invalidField } from '#kernel/errors.ts';
import { isForeignRef } from '#kernel/git-refs.ts';
import type { Kind } from '#services/kind.ts';

/** Returns the first ref, neither branch nor tag, of a configuration whose pushes would deploy it. */
function foreignRefOf({ capabilities }: Kind, spec: unknown): string | undefined {
  if (!capabilities?.autoDeploy?.(spec)) return undefined;
  return (capabilities.commits?.of ?? [undefined])
    .map((of) => capabilities.gitSource?.(spec, of)?.branch)
    .find((branch) => branch !== undefined && isForeignRef(branch));
}

/**
 * Throws 400 for `auto_deploy` together with a ref that is neither branch nor tag: anybody pushes to that of a pull request, and the code
 * would run with the secrets of the service. A configuration that has both already stays as it is; its pushes deploy nothing
 * (services/pushes/followers.ts).
 */
export function refuseForeignAutoDeploy(kind: Kind, spec: unknown, present: unknown): void {
  const ref = foreignRefOf(kind, spec);
  if (ref === undefined || (present !== null && foreignRefOf(kind, present) === ref)) return;
  throw invalidField(
    'auto_deploy',
    `must be false for ${ref}, which is neither branch nor tag: strangers push to the refs of pull requests. Name a branch or a tag, or deploy the service by a call`,
  );
}
