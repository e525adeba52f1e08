import type { Finding } from '#kernel/finding.ts';
import { connectionAdvice, openFilesLimit } from '#runtimes/proxy/descriptors.ts';
import { chooseProxy, limitsOf } from '#runtimes/proxy/index.ts';
import { DEFAULT_LIMITS } from '#runtimes/proxy/limits.ts';
import { RuntimeError } from '#runtimes/runtime.ts';

/** Inspects the reverse proxy that deployed services are reached through, and whether it serves HTTPS. */
export async function inspectProxy(settings: {
  proxy: Parameters<typeof chooseProxy>[0];
  proxyHttpsPort: number;
}): Promise<Finding[]> {
  const [proxy, https] = ['proxy', 'HTTPS'];
  try {
    const caddy = await chooseProxy(settings.proxy);
    const tooFewFiles = connectionAdvice(openFilesLimit(), DEFAULT_LIMITS.connections);
    const files = tooFewFiles === null ? [] : [tooFewFiles];
    if (caddy) {
      const found = `Caddy ${caddy.version} (${caddy.path})`;
      const served = `port ${settings.proxyHttpsPort}, for custom domains that ask for a certificate`;
      return [
        { name: proxy, state: 'ok', found, advice: [...limitsOf(caddy), ...files] },
        { name: https, state: 'ok', found: served, advice: [] },
      ];
    }
    const install =
      'Install Caddy (`apt-get install caddy`) and set QUARTERDECK_PROXY=caddy, or end TLS in front: docs/guides/https.md.';
    return [
      { name: proxy, state: 'ok', found: 'built-in', advice: files },
      { name: https, state: 'missing', found: 'not served by the built-in proxy', advice: [install] },
    ];
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    const advice = ['Install Caddy, or unset QUARTERDECK_PROXY.'];
    return [{ name: proxy, state: 'broken', found: error.message, advice }];
  }
}
