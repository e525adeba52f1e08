import { describe, expect, test } from 'vitest';
import { createSources } from '#app/git.ts';
import { newId } from '#kernel/ids.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

/** Resolves the head of a repository with a token of a provider. */
async function resolveWith(api: string, url: string) {
  const admin = await app.organization();
  const body = { name: newId(), type: 'GITLAB', token: 'the-token', git_api_url: api };
  const token = ok(await admin.post(`/organization/${admin.organizationId}/gitToken`, body), 201);
  const { organizationId } = admin;
  const signal = new AbortController().signal;
  return createSources(app.platform).resolve({
    organizationId,
    url,
    branch: 'main',
    gitTokenId: token.id,
    signal,
    commitId: null,
  });
}

describe('a git token', () => {
  test.each([
    ['another host', 'https://elsewhere.invalid/a/b.git'],
    ['another host in the short form of ssh, which becomes https', 'git@elsewhere.invalid:a/b.git'],
    ['another host over ssh, which becomes https', 'ssh://git@elsewhere.invalid/a/b.git'],
    ['a host that begins alike', 'https://gitlab.invalid.elsewhere.invalid/a/b.git'],
    ['a host after something that looks like its own', 'https://gitlab.invalid@elsewhere.invalid/a/b.git'],
    ['another port of its host', 'https://gitlab.invalid:8443/a/b.git'],
    ['its host without TLS', 'http://gitlab.invalid/a/b.git'],
  ])('is not sent to %s', async (_what, url) => {
    await expect(resolveWith('https://gitlab.invalid/api/v4', url)).rejects.toThrow(/^The git token is for/);
  });

  test.each(['https://gitlab.invalid/a/b.git', 'git@gitlab.invalid:a/b.git', 'ssh://git@gitlab.invalid/a/b.git'])(
    'goes to its own host: %s',
    async (url) => {
      // The name is one that never resolves: getting that far is what is wanted.
      await expect(resolveWith('https://gitlab.invalid/api/v4', url)).rejects.toThrow(/does not resolve/);
    },
  );
});
