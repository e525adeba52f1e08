import { domainToASCII } from 'node:url';
import { isIP } from 'node:net';
import { invalidField } from '#kernel/errors.ts';
import type { Settings } from '#platform/settings/index.ts';
import { CHALLENGE_LABEL } from '#services/capabilities/service/custom-domains/challenge.ts';

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Longest name for which the TXT record that proves it fits into the DNS, too. */
const MAX_LENGTH = 253 - `${CHALLENGE_LABEL}.`.length;

/** Settings that name domains of the operator. */
export type ReservedNames = Pick<Settings, 'proxyDomain' | 'baseUrl' | 'reservedDomains'>;

/**
 * A host name as it is stored and compared: lower case, ASCII (international names in punycode), without a final dot.
 * Throws 400 naming the field when it is none, or one that the operator keeps.
 */
export function toHostName(text: string, reserved: ReservedNames, field = 'domain'): string {
  const trimmed = text.trim().replace(/\.$/, '');
  if (trimmed.includes('*'))
    throw invalidField(field, 'must be one host name: wildcards are not served, add each name by itself');
  // Decided before the conversion, which would read a port, path or percent sign in its own way.
  if (/[\s:/?#@%\\[\]]/.test(trimmed))
    throw invalidField(field, 'must be a host name alone, such as shop.example.com: no scheme, port or path');
  const name = domainToASCII(trimmed.toLowerCase());
  const labels = name.split('.');
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label)) || isIP(name) !== 0)
    throw invalidField(field, 'must be a full host name, such as shop.example.com');
  if (name.length > MAX_LENGTH) throw invalidField(field, `must have at most ${MAX_LENGTH} characters`);
  const owner = reservedBy(name, reserved);
  if (owner !== undefined)
    throw invalidField(
      field,
      `must be a domain of your own: ${owner} and all names below it are reserved for this installation`,
    );
  return name;
}

/** The reserved domain that the name is or stands below. */
function reservedBy(name: string, { proxyDomain, baseUrl, reservedDomains }: ReservedNames): string | undefined {
  const own = baseUrl === '' ? [] : [new URL(baseUrl).hostname];
  return [proxyDomain.toLowerCase(), 'localhost', ...own, ...reservedDomains].find(
    (domain) => name === domain || name.endsWith(`.${domain}`),
  );
}
