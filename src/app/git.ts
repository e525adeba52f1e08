import path from 'node:path';
import { diskLimits } from '#runtimes/tools/disk-limits.ts';
import type { Platform } from '#platform/context.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { removeAbandoned } from '#runtimes/tools/work-folders.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import { createOrganizationSources, type OrganizationSources } from '#services/sources/sources.ts';

/**
 * Creates git of this machine, by the policy of the settings and with the tokens of organizations. Removes the work of processes that were
 * killed.
 */
export function createSources(platform: Platform): OrganizationSources {
  const { settings } = platform;
  const http = createHttpClient({ allowedPrivateAddresses: settings.allowedPrivateAddresses });
  const workDirectory = path.join(settings.dataDir, 'git');
  removeAbandoned(workDirectory);
  const git = new Git({
    workDirectory,
    localRoots: settings.localGitRoots,
    addressPolicy: (host) => http.addressPolicy(host),
    request: (url, request) => http.request(url, request),
    knownHostsFile: path.join(settings.dataDir, 'known-hosts'),
    disk: diskLimits(settings, settings.checkoutLimitMb),
  });
  return createOrganizationSources(platform, git);
}
