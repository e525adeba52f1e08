import type { SessionVerifier } from '#platform/access/authenticate.ts';
import type { Platform } from '#platform/context.ts';
import { createGroupSync } from '#resources/enterprise-connection/sync.ts';

export { enterpriseConnectionRoutes } from '#resources/enterprise-connection/routes.ts';

/** Creates the verifier of sessions of the identity provider, which is loaded only if the settings name one. */
export async function createSessions(platform: Platform): Promise<SessionVerifier | null> {
  if (!platform.settings.oidcIssuer) return null;
  const { createSessionVerifier } = await import('#platform/access/oidc.ts');
  return createSessionVerifier(platform, createGroupSync(platform));
}
