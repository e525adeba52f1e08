import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { notFound } from '#kernel/errors.ts';
import { takesPasswords } from '#platform/access/takes-passwords.ts';
import { sendsMail } from '#platform/mail-queue/index.ts';
import { passkeySite } from '#platform/settings/address.ts';
import type { Settings } from '#platform/settings/index.ts';

/** Page with the headers that keep everything out of it but what it is made of. */
interface Page {
  text: string;
  headers: Record<string, string>;
}

/** Serves the page where people sign in. It is a client of the API like any other: what it does goes through the operations. */
export function servePages(
  app: FastifyInstance,
  settings: Pick<Settings, 'passwords' | 'oidcIssuer' | 'smtpUrl' | 'baseUrl' | 'host' | 'port'>,
): void {
  let page: Page | undefined;
  app.get('/sign-in', { exposeHeadRoute: false }, (_request, reply): FastifyReply => {
    if (!takesPasswords(settings)) throw notFound('Path');
    page ??= readPage(new URL('./sign-in.html', import.meta.url), {
      mail: String(sendsMail(settings)),
      passkeys: passkeySite(settings)?.origin ?? '',
    });
    return reply.headers(page.headers).send(page.text);
  });
}

/** Reads a page, whose root element is told what it can offer: whether there is mail, and the origin at which there are passkeys. */
function readPage(file: URL, offers: { mail: string; passkeys: string }): Page {
  const text = readFileSync(file, 'utf8')
    .replace('data-mail="false"', `data-mail="${offers.mail}"`)
    .replace('data-passkeys=""', `data-passkeys="${offers.passkeys}"`);
  const script = hashOf(text, 'script');
  const style = hashOf(text, 'style');
  const policy = `default-src 'none'; script-src ${script}; style-src ${style}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return {
    text,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-cache',
    },
  };
}

/** Returns the source of a policy that allows exactly this element of the page (Content Security Policy Level 3 §2.3.1). */
function hashOf(text: string, element: 'script' | 'style'): string {
  const content = new RegExp(`<${element}>([^]*?)</${element}>`).exec(text)![1]!;
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
