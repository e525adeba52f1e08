import { httpUrl } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Tells whether a service with these settings is ready on this machine; one on a free port of its choice is not found. */
export async function answersReady(settings: Settings): Promise<boolean> {
  if (settings.port === 0 || settings.operationsPort === 0) return false;
  try {
    const address = `${httpUrl(settings.host, settings.operationsPort)}/readyz`;
    return (await fetch(address, { signal: AbortSignal.timeout(5000) })).ok;
  } catch {
    return false; // No program listens there, or another one.
  }
}
