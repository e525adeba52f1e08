import type { Settings } from '#platform/settings/index.ts';

/** Returns the address under which people reach the API, without a slash at its end. */
export const addressOfApi = ({ baseUrl, host, port }: Pick<Settings, 'baseUrl' | 'host' | 'port'>): string =>
  baseUrl || `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * Returns the address of the page where people sign in. The secret of a one-time link is in the fragment, which browsers do not send: it
 * reaches neither logs nor proxies.
 */
export const signInPage = (settings: Parameters<typeof addressOfApi>[0], secret?: string): string =>
  `${addressOfApi(settings)}/sign-in${secret === undefined ? '' : `#${secret}`}`;
