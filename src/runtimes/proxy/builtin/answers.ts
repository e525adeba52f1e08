import { STATUS_CODES } from '#kernel/node-http.ts';
import type { IncomingMessage, ServerResponse } from 'node:http';

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (title: string, message: string): string => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}</style>
<h1>${title}</h1><p>${escapeHtml(message)}</p></html>
`;

/** Builds an answer of the proxy itself by the accepted types: a page for browsers, JSON on request, else text. */
function describe(accept: string, status: number, message: string): { fields: [string, string][]; body: string } {
  const error = STATUS_CODES[status]!;
  const [type, body] = accept.includes('text/html')
    ? ['text/html', page(`${status} ${error}`, message)]
    : accept.includes('json')
      ? ['application/json', `${JSON.stringify({ status, error, message })}\n`]
      : ['text/plain', `${message}\n`];
  const fields: [string, string][] = [
    ['content-type', `${type}; charset=utf-8`],
    ['content-length', String(Buffer.byteLength(body))],
    ['cache-control', 'no-store'],
  ];
  if (status === 503) fields.push(['retry-after', '1']);
  return { fields, body };
}

/** Sends an answer of the proxy itself. */
export function answerError(request: IncomingMessage, response: ServerResponse, status: number, message: string): void {
  const { fields, body } = describe(request.headers.accept ?? '', status, message);
  response.writeHead(status, {
    ...Object.fromEntries(fields),
    // The unread rest of the body would be interpreted as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
