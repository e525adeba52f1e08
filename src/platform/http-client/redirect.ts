import { OutgoingError } from '#platform/http-client/errors.ts';
import type { OutgoingAnswer, OutgoingRequest } from '#platform/http-client/send.ts';

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a GET or HEAD and follows redirects, at most five. Credentials (`authorization`) go along as long as it stays at the first origin, and
 * never again once it has left it; what was asked for with TLS is not fetched without. `first` is an answer that is there already.
 */
export async function requestFollowing(
  http: { request(url: string, request: OutgoingRequest): Promise<OutgoingAnswer> },
  url: string,
  request: OutgoingRequest,
  authorization?: string,
  first?: OutgoingAnswer,
): Promise<OutgoingAnswer> {
  let at = new URL(url);
  const { origin } = at;
  let home = true;
  const ask = () =>
    http.request(
      at.href,
      home && authorization !== undefined ? { ...request, headers: { ...request.headers, authorization } } : request,
    );
  let answer = first ?? (await ask());
  for (let n = 0; REDIRECTS.has(answer.status); n++) {
    const location = String(answer.headers['location'] ?? '');
    if (n === MAX_REDIRECTS || !URL.canParse(location, at.href))
      throw new OutgoingError('connection', `${at.host} leads from one address to another.`);
    const next = new URL(location, at);
    if (at.protocol === 'https:' && next.protocol !== 'https:')
      throw new OutgoingError('tls', `${at.host} leads to an address without TLS.`);
    at = next;
    home &&= at.origin === origin;
    answer = await ask();
  }
  return answer;
}
