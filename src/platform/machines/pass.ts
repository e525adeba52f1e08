import { timingSafeEqual } from 'node:crypto';
import type { Vault } from '#platform/vault/index.ts';

/** Header of a request that another machine of the installation has sent on. */
export const PASS_HEADER = 'quarterdeck-sent-on';

/** Milliseconds that a pass holds: clocks of machines may differ by as much. */
const HOLDS_MS = 60_000;

const textOf = (at: number, method: string, url: string): string => `request sent on\n${at}\n${method}\n${url}`;

/** Makes the pass of one request: the receiver neither counts it again nor sends it on once more. */
export function makePass(vault: Pick<Vault, 'sign'>, now: Date, method: string, url: string): string {
  const at = now.getTime();
  return `${at}.${vault.sign(textOf(at, method, url)).toString('base64url')}`;
}

/** Returns whether a request comes from another machine of the installation, which knows the key of signatures. */
export function isPassed(
  vault: Pick<Vault, 'sign'>,
  now: Date,
  { method, url, headers }: { method?: string | undefined; url?: string | undefined; headers: Record<string, unknown> },
): boolean {
  const [at, mac] = String(headers[PASS_HEADER] ?? '').split('.');
  if (!at || !mac || Math.abs(now.getTime() - Number(at)) > HOLDS_MS) return false;
  const expected = vault.sign(textOf(Number(at), method ?? '', url ?? ''));
  const given = Buffer.from(mac, 'base64url');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
