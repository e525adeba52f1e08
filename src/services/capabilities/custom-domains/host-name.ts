import { domainToASCII } from 'node:url';
import { isIP } from 'node:net';
import { invalidField } from '#kernel/errors.ts';

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A host name as it is stored and compared: lower case, ASCII (international names in punycode), without a final dot.
 * Throws 400 naming the field when it is none, or one that the installation gives out itself.
 */
export function toHostName(text: string, proxyDomain: string, field = 'domain'): string {
  const trimmed = text.trim().replace(/\.$/, '');
  if (trimmed.includes('*'))
    throw invalidField(field, 'must be one host name: wildcards are not served, add each name by itself');
  // Decided before the conversion, which would read a port, path or percent sign in its own way.
  if (/[\s:/?#@%\\[\]]/.test(trimmed))
    throw invalidField(field, 'must be a host name alone, such as shop.example.com: no scheme, port or path');
  const name = domainToASCII(trimmed.toLowerCase());
  const labels = name.split('.');
  if (name.length > 253 || labels.length < 2 || !labels.every((label) => LABEL.test(label)) || isIP(name) !== 0)
    throw invalidField(field, 'must be a full host name, such as shop.example.com');
  if (name === proxyDomain || isGenerated(name, proxyDomain))
    throw invalidField(field, `is a host name of this installation: names like it under ${proxyDomain} are its own`);
  return name;
}

/** Whether the name has the form of those that services get by themselves: `app-z1a2b3c4d.<domain>` (decisions.md 37). */
const isGenerated = (name: string, proxyDomain: string): boolean =>
  name.endsWith(`.${proxyDomain}`) && /-z[0-9a-f]{8}$/.test(name.slice(0, -proxyDomain.length - 1));
