import { readFileSync } from 'node:fs';

/** File of a Linux setting, since 5.14, of the network namespace that the process is in. */
const MIGRATION = '/proc/sys/net/ipv4/tcp_migrate_req';

/**
 * Returns whether a change of configuration may reset connections that Caddy has not accepted yet. Each configuration listens on its own socket at
 * the same port (SO_REUSEPORT), and Linux resets connections that wait at a closing socket unless it is told to move them.
 */
export function losesWaiting(file = MIGRATION): boolean {
  if (process.platform !== 'linux') return true;
  try {
    return readFileSync(file, 'utf8').trim() !== '1';
  } catch {
    // Before 5.14 there is no such setting, and nothing is moved.
    return true;
  }
}
