import type { FastifyRequest } from 'fastify';
import { isId } from '#kernel/ids.ts';

/**
 * Path of a request for logs and traces. Only ids are shown: other parts of a path, such as the secret of a link or the address of a webhook,
 * are credentials. Of a path that no route has, words and ids are shown.
 */
export function loggedPath(request: FastifyRequest): string {
  const given = request.url.split('?')[0]!.split('/');
  const { url: route } = request.routeOptions;
  if (route === undefined) return given.map((part) => (isWord(part) || isId(part) ? part : '…')).join('/');
  return route
    .split('/')
    .map((part, at) => (part.startsWith(':') && isId(given[at] ?? '') ? given[at] : part))
    .join('/');
}

const isWord = (part: string): boolean => /^[A-Za-z]{0,40}\d{0,2}$/.test(part);
