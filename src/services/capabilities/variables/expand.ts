import type { ExpandVariables } from '#deployments/index.ts';
import { resolveVariables } from '#deployments/model/variables.ts';
import { withholdSecrets } from '#deployments/model/withheld-secrets.ts';
import { readExternalSecrets } from '#resources/secret-manager-access/index.ts';
import { withOutputs } from '#services/capabilities/variables/outputs.ts';
import { createThaw, thawVariables } from '#services/capabilities/variables/snapshot.ts';

/**
 * Makes what expands the variables of services, for one process: what all services of a deployment see is thawed once. Secrets do not reach
 * an environment that runs the code of a fork, whatever made the deployment.
 */
export function createExpand(): ExpandVariables {
  const thawOnce = createThaw();
  return async (context, organizationId, service, deployment) => {
    const { isFork } = deployment;
    const read = async () => {
      if (isFork) {
        const frozen = withholdSecrets([...deployment.shared, ...service.variables]);
        return thawVariables(context, organizationId, frozen);
      }
      const shared = await thawOnce(context, organizationId, deployment.shared);
      return [...shared, ...(await thawVariables(context, organizationId, service.variables))];
    };
    const written = await withOutputs(context, organizationId, await read(), deployment);
    const records = isFork ? withholdSecrets(written) : written;
    const resolved = resolveVariables(
      await readExternalSecrets(context, { organizationId }, records, deployment.signal),
    );
    return {
      variables: Object.fromEntries(resolved.variables.map(({ key, value }) => [key, value])),
      files: resolved.files,
      secrets: resolved.secrets,
      warnings: [...resolved.warnings, ...withheldWarnings(resolved.withheld)],
    };
  };
}

const withheldWarnings = (keys: string[]): string[] =>
  keys.length === 0
    ? []
    : [`Without ${keys.join(', ')}: secrets, and variables that name one, do not reach the code of a fork.`];
