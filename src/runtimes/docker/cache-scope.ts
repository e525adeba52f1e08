import { createHash } from 'node:crypto';
import type { BuildSpec } from '#runtimes/runtime.ts';

/**
 * Name of a part of the builder's caches: of an organization, or of one environment with the code of strangers. Organizations
 * share no cache entries: a build argument such as HTTP_PROXY changes the result of a step, but not its cache key. The name cannot be guessed by
 * another organization.
 */
export const cacheScope = ({ identity, isUntrusted }: Pick<BuildSpec, 'identity' | 'isUntrusted'>): string => {
  const { installation, organizationId, environmentId } = identity;
  const parts = [installation, organizationId, ...(isUntrusted ? [environmentId] : [])];
  return createHash('sha256').update(parts.join('/')).digest('hex').slice(0, 32);
};
