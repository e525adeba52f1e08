import type { ExpandVariables } from '#deployments/index.ts';
import { resolveVariables } from '#deployments/model/variables.ts';
import { readExternalSecrets } from '#resources/secret-manager-access/index.ts';
import { withOutputs } from '#services/capabilities/variables/outputs.ts';
import { createThaw, thawVariables } from '#services/capabilities/variables/snapshot.ts';

/** Makes what expands the variables of services, for one process: what all services of a deployment see is thawed once. */
export function createExpand(): ExpandVariables {
  const thawOnce = createThaw();
  return async (context, organizationId, service, deployment) => {
    const shared = await thawOnce(context, organizationId, deployment.shared);
    const own = await thawVariables(context, organizationId, service.variables);
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
  };
}
