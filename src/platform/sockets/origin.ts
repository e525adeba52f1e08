import type { IncomingHttpHeaders } from 'node:http';
import { forbidden } from '#kernel/errors.ts';

/**
 * Refuses browsers on pages of other hosts: unlike requests, sockets are not kept from them by the browser. `allowed` holds further origins;
 * `*` is all. Programs other than browsers send no origin.
 */
export function refuseOrigin({ origin, host }: IncomingHttpHeaders, allowed: readonly string[]): void {
  if (origin === undefined || allowed.includes('*') || allowed.includes(origin)) return;
  if (URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase()) return;
  throw forbidden(
    'Pages of this origin may not open sockets here: the operator names it in QUARTERDECK_SOCKET_ORIGINS.',
  );
}
