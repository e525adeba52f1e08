import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpClient } from '#platform/http-client/index.ts';
import { Git } from '#runtimes/tools/git/index.ts';
import { startGitServer } from '#runtimes/tools/git/testing.ts';
import type { GitServerOptions } from '#runtimes/tools/git/testing.ts';
import { CREDENTIALS, useGit } from '#runtimes/tools/git/git.fixture.ts';

const { root, out, from, checkout, request } = await useGit();

describe('Git LFS', () => {
  const oidOf = (content: string) => createHash('sha256').update(content).digest('hex');
  const pointerTo = (content: string, size = content.length) =>
    `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${size}\n`;

  /** Makes a repository with pointers, and a server that has the contents. */
  async function withLarge(name: string, contents: string[], server: Partial<GitServerOptions> = {}) {
    const repository = root.make(name);
    const files = Object.fromEntries(contents.map((content, at) => [`sub/${at}.bin`, pointerTo(content)]));
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'b.txt': 'b', ...files });
    const objects = new Map(contents.map((content) => [oidOf(content), content]));
    return { id, repository, server: await startGitServer({ root: root.folder, objects, ...server }) };
  }

  test('brings the contents, with the credentials of the repository, the program git-lfs or not', async () => {
    const contents = ['a large file, so to say', 'x'.repeat(3_000_000), 'a large file, so to say'];
    const { id, server } = await withLarge('with-lfs', contents, { credentials: CREDENTIALS });
    await using _ = server;
    const { folder } = await checkout(from(`${server.url}/with-lfs`, { credentials: CREDENTIALS }), id);
    for (const [at, content] of contents.entries())
      expect(readFileSync(path.join(folder, `sub/${at}.bin`), 'utf8')).toBe(content);
    expect(readdirSync(folder, { recursive: true })).toHaveLength(6);
    expect(server.requests).toContain('/with-lfs.git/info/lfs/objects/batch');
  });

  test('brings the contents that a local repository keeps', async () => {
    const repository = root.make('with-local-lfs');
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'a.bin': pointerTo('content') });
    const oid = oidOf('content');
    const store = path.join(repository.url, '.git/lfs/objects', oid.slice(0, 2), oid.slice(2, 4));
    await expect(checkout(from(repository.url), id)).rejects.toThrow(`it does not hold ${oid}`);
    mkdirSync(store, { recursive: true });
    writeFileSync(path.join(store, oid), 'content');
    const { folder } = await checkout(from(repository.url), id);
    expect(readFileSync(path.join(folder, 'a.bin'), 'utf8')).toBe('content');
    writeFileSync(path.join(store, oid), 'another');
    await expect(checkout(from(repository.url), id)).rejects.toThrow(/is something else/);
  });

  test('is had from no private address, by whatever way a server leads there', async () => {
    let called = 0;
    const inner = createServer((_request, response) => void response.end(`secret ${++called}`));
    await new Promise<void>((resolve) => inner.listen(0, '127.0.0.2', resolve));
    onTestFinished(() => new Promise((resolve) => inner.close(() => resolve())));
    const { port } = inner.address() as AddressInfo;
    const guarded = createHttpClient({ allowedPrivateAddresses: ['127.0.0.1/32'] });
    for (const [at, leads] of [
      { href: `http://127.0.0.2:${port}/x` },
      { href: `http://0x7f.2:${port}/x` },
      { href: `http://[::ffff:127.0.0.2]:${port}/x` },
      { redirect: `http://127.0.0.2:${port}/x` },
    ].entries()) {
      const { id, server } = await withLarge(`leads-${at}`, ['content'], { leads });
      await using _ = server;
      const asking = new Git({ localRoots: [], request: guarded.request }).checkout(
        from(`${server.url}/leads-${at}`),
        id,
        path.join(out, `leads-${at}`),
        () => undefined,
      );
      await expect(asking).rejects.toThrow(/private, local or reserved address/);
    }
    expect(called).toBe(0);
  });

  test.each([
    ['another content', { contents: 'CONTENT' }, /is something else/],
    ['a longer one', { contents: 'x'.repeat(10_000_000) }, /longer than it should be/],
    ['none', { without: true }, /the server has not/],
    ['a long answer', { href: `http://127.0.0.1/${'x'.repeat(300 * 1024)}` }, /the server answered more than 256 KiB/],
    ['a file of the machine', { href: 'file:///etc/passwd' }, /must be an http or https URL/],
  ] as const)('of a server that gives %s is refused', async (what, leads, message) => {
    const name = `gives-${what.replaceAll(' ', '-')}`;
    const { id, server } = await withLarge(name, ['content'], { leads });
    await using _ = server;
    await expect(checkout(from(`${server.url}/${name}`), id)).rejects.toThrow(message);
  });

  test('that takes more disk than a checkout may is not asked for', async () => {
    const { id, server } = await withLarge('too-large', ['x'.repeat(3 << 20)], {});
    await using _ = server;
    // More than the rest of the checkout takes, however long that is measured.
    const disk = { mostBytes: 2 << 20, reservedBytes: 0 };
    const limited = new Git({ localRoots: [], request, disk });
    const asking = limited.checkout(from(`${server.url}/too-large`), id, path.join(out, 'too-large'), () => undefined);
    await expect(asking).rejects.toThrow('they take more disk than the operator allows a checkout.');
  });

  test('gets the token at its own place only', async () => {
    const elsewhere = await startGitServer({ root: root.folder, objects: new Map([[oidOf('content'), 'content']]) });
    await using _elsewhere = elsewhere;
    const href = `${elsewhere.url}/x.git/info/lfs/objects/${oidOf('content')}`;
    const { id, server } = await withLarge('token', ['content'], { credentials: CREDENTIALS, leads: { href } });
    await using _ = server;
    await checkout(from(`${server.url}/token`, { credentials: CREDENTIALS }), id);
    expect(elsewhere.requests).toHaveLength(1);
    expect(elsewhere.authorizations).toEqual([null]);
  });

  test('that no file needs is not missed', async () => {
    const repository = root.make('not-large');
    const id = repository.commit({ '.gitattributes': '*.bin filter=lfs\n', 'a.txt': 'text\n' });
    const { folder } = await checkout(from(repository.url), id);
    expect(existsSync(path.join(folder, 'a.txt'))).toBe(true);
  });
});
