import { addressOfApi } from '#platform/settings/address.ts';
import type { Call } from '#platform/http/route.ts';
import type { EventQuery } from '#resources/event/schema.ts';

const TOKENS = ['continueToken', 'stepBackToken'];

/**
 * Makes links to other pages of a call's list: the same filters with another token, under the address that people reach the API
 * by (`QUARTERDECK_BASE_URL`) or, without it, the one that this caller used.
 */
export function linkTo(
  call: Pick<Call<unknown, { organizationId: string }, EventQuery>, 'settings' | 'headers' | 'params' | 'query'>,
) {
  const { settings, headers, params, query } = call;
  const used = `http://${String(headers.host)}`;
  const base = !settings.baseUrl && URL.canParse(used) ? used : addressOfApi(settings);
  return (token: { continueToken?: string; stepBackToken?: string }): string => {
    const url = new URL(`${base}/organization/${params.organizationId}/events`);
    for (const [name, value] of Object.entries(query))
      if (value !== null && value !== undefined && !TOKENS.includes(name)) url.searchParams.set(name, String(value));
    for (const [name, value] of Object.entries(token)) url.searchParams.set(name, value);
    return url.href;
  };
}
