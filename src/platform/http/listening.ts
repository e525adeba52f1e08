import type { Settings } from '#platform/settings/index.ts';
import { SETTINGS } from '#platform/settings/schema.ts';

/** Names the setting in the error of an address that can't be listened on. */
export async function listening<T>(
  key: 'port' | 'operationsPort' | 'proxyPort',
  settings: Settings,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const [code] = /EADDRINUSE|EACCES|EADDRNOTAVAIL|ENOTFOUND/.exec((cause as Error).message) ?? [];
    const [host, hostName] =
      key === 'proxyPort' ? [settings.proxyHost, SETTINGS.proxyHost.name] : [settings.host, SETTINGS.host.name];
    const port = `${SETTINGS[key].name}=${settings[key]}`;
    switch (code) {
      case 'EADDRINUSE':
        throw new Error(`${port}: another program listens on ${host}:${settings[key]}. End it or set another port.`, {
          cause,
        });
      case 'EACCES':
        throw new Error(`${port}: this account may not listen on it. Set a port from 1024 up.`, { cause });
      case 'EADDRNOTAVAIL':
      case 'ENOTFOUND':
        throw new Error(`${hostName}=${host}: this machine has no such address. Set one of its own.`, { cause });
      default:
        throw cause;
    }
  }
}
