import path from 'node:path';
import { diskLimits } from '#runtimes/tools/disk-limits.ts';
import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import { createOrganizationSources, type OrganizationSources } from '#services/sources/sources.ts';

/** Git of this machine, by the policy of the settings and with the tokens of organizations. */
export function createSources(platform: Platform): OrganizationSources {
  const { settings } = platform;
  const http = createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });
  const git = new Git({
    localRoots: settings.localGitRoots,
    addressPolicy: (host) => http.addressPolicy(host),
    request: (url, request) => http.request(url, request),
    knownHostsFile: path.join(settings.dataDir, 'known-hosts'),
    disk: diskLimits(settings, settings.checkoutLimitMb),
  });
  return createOrganizationSources(platform, git);
}
