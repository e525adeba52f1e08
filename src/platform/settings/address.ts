import { isIP } from 'node:net';
import type { Settings } from '#platform/settings/index.ts';

/** Returns the URL of a server without a path; an IPv6 address gets its brackets (RFC 3986 §3.2.2). */
export const httpUrl = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Returns the address under which people reach the API, without a slash at its end. */
export const addressOfApi = ({ baseUrl, host, port }: Pick<Settings, 'baseUrl' | 'host' | 'port'>): string =>
  baseUrl || httpUrl(host, port);

/**
 * Returns the address of the page where people sign in. The secret of a one-time link is in the fragment, which browsers do not send: it
 * reaches neither logs nor proxies.
 */
export const signInPage = (settings: Parameters<typeof addressOfApi>[0], secret?: string): string =>
  `${addressOfApi(settings)}/sign-in${secret === undefined ? '' : `#${secret}`}`;

/** Site that passkeys are bound to. */
export interface PasskeySite {
  /** Origin of the page where people sign in. */
  origin: string;
  /** Host of the page, without its port: the RP ID of Web Authentication. */
  rpId: string;
}

/**
 * Returns the site of passkeys by the address in the settings, never by a header of a request. Null where browsers make none: at an IP
 * address, and over HTTP except on localhost.
 */
export function passkeySite(settings: Parameters<typeof addressOfApi>[0]): PasskeySite | null {
  const { protocol, hostname, origin } = new URL(addressOfApi(settings));
  if (hostname.startsWith('[') || isIP(hostname) !== 0) return null;
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost');
  return protocol === 'https:' || isLocal ? { origin, rpId: hostname } : null;
}
