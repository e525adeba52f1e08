import { request as requestHttp } from '#kernel/node-http.ts';
import type { RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { CommandResult } from '#runtimes/tools/command.ts';
import type { GitCredentials, GitLocation } from '#runtimes/tools/git/location.ts';

const WHAT = '/info/refs';
const TIMEOUT_MS = 20_000;

/** Returns whether git met a redirect, which it must not follow. */
export const isRedirected = ({ stderr }: CommandResult): boolean => /returned error: 30[12378]/.test(stderr);

/**
 * Returns the URL to which the server redirects the repository; null without a usable one. GitLab redirects without `.git` at the end. The
 * new URL must pass the policy like any other: git itself would follow it into a private network and send the credentials there.
 */
export function redirectTarget(
  location: GitLocation,
  credentials: GitCredentials | null,
  signal: AbortSignal,
): Promise<string | null> {
  const url = new URL(`${location.url.replace(/\/+$/, '')}${WHAT}?service=git-upload-pack`);
  const options: RequestOptions = {
    signal,
    timeout: TIMEOUT_MS,
    agent: false,
    headers: { 'user-agent': 'git/2', ...authorization(credentials) },
  };
  const [address] = location.addresses ?? [];
  if (address)
    options.lookup = (_host, { all }, callback) => {
      const family = address.includes(':') ? 6 : 4;
      if (all) callback(null, [{ address, family }]);
      else callback(null, address, family);
    };
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? requestHttps : requestHttp;
    const sent = send(url, options, (response) => {
      response.resume();
      resolve(repositoryOf(response.headers.location, url));
    });
    sent.on('timeout', () => sent.destroy(new Error(`${location.url} did not answer in time.`)));
    sent.on('error', reject);
    sent.end();
  });
}

function authorization(credentials: GitCredentials | null): Record<string, string> {
  if (!credentials) return {};
  const basic = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64');
  return { authorization: `Basic ${basic}` };
}

function repositoryOf(target: string | undefined, base: URL): string | null {
  if (target === undefined || !URL.canParse(target, base.href)) return null;
  const url = new URL(target, base);
  if (!url.pathname.endsWith(WHAT)) return null;
  return `${url.origin}${url.pathname.slice(0, -WHAT.length)}`;
}
