import { createHmac, hash, timingSafeEqual } from 'node:crypto';

type Headers = Record<string, string | string[] | undefined>;

/** Headers with the HMAC-SHA-256 of a body: of GitHub behind a label, of Gitea and Forgejo without one. */
const SIGNATURES = ['x-hub-signature-256', 'x-gitea-signature', 'x-forgejo-signature'];

/**
 * Checks that a call knows the secret, in constant time: by the signature of its body, by `Authorization`, or by the address for registries
 * that send neither. A call with a signature is judged by that alone.
 */
export function isProven(headers: Headers, token: string | undefined, secret: string, body: string): boolean {
  const signatures = SIGNATURES.map((name) => headerOf(headers, name)).filter((given) => given !== undefined);
  if (signatures.length > 0) {
    const right = createHmac('sha256', secret).update(body).digest('hex');
    return signatures.every((given) => isEqual(given.replace(/^sha256=/, ''), right));
  }
  const given = headerOf(headers, 'authorization');
  return given === undefined ? isEqual(token ?? '', secret) : isEqual(secretOf(given), secret);
}

/** Returns the secret of `Authorization`: behind `Bearer`, as the password behind `Basic`, or the whole value. */
function secretOf(header: string): string {
  const [, scheme, rest] = /^(bearer|basic) +(.*)$/i.exec(header.trim()) ?? [];
  if (scheme === undefined) return header.trim();
  if (scheme.toLowerCase() === 'bearer') return rest!.trim();
  return Buffer.from(rest!, 'base64').toString().replace(/^[^:]*:/, ''); // prettier-ignore
}

const headerOf = (headers: Headers, name: string): string | undefined => [headers[name]].flat()[0] || undefined;

const isEqual = (one: string, other: string): boolean =>
  timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));
