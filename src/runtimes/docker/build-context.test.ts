import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { extract } from 'tar-stream';
import { findSource, packContext } from './build-context.ts';

let home: string;
let checkout: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'build-context-'));
  checkout = join(home, 'checkout');
  await mkdir(join(checkout, 'app/src'), { recursive: true });
  await writeFile(join(home, 'secret.txt'), 'outside');
  await writeFile(join(checkout, 'shared.txt'), 'shared');
  await writeFile(join(checkout, 'app/Dockerfile'), 'FROM scratch\n');
  await writeFile(join(checkout, 'app/src/main.js'), 'main');
});
afterEach(() => rm(home, { recursive: true }));

const find = (rootPath: string, dockerfilePath: string) =>
  findSource({ directory: checkout, rootPath, dockerfilePath });

/** Names of the archive's entries; a file's content, a link's target. */
async function entries(rootPath = 'app', dockerfilePath = 'Dockerfile'): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const archive = extract();
  const source = await find(rootPath, dockerfilePath);
  const packed = await packContext(source, await readFile(source.dockerfile, 'utf8'));
  packed.pipe(archive);
  for await (const entry of archive) {
    const { name, type, linkname } = entry.header;
    const content = await text(entry as unknown as Readable);
    found[name] = type === 'symlink' ? `-> ${linkname}` : type === 'directory' ? '/' : content;
  }
  return found;
}

describe('the archive', () => {
  test('holds the context folder and nothing beside it', async () => {
    expect(await entries()).toEqual({ Dockerfile: 'FROM scratch\n', src: '/', 'src/main.js': 'main' });
  });

  test('links go in as links: neither files nor folders outside are read', async () => {
    await symlink(join(home, 'secret.txt'), join(checkout, 'app/leak.txt'));
    await symlink(home, join(checkout, 'app/leaks'));
    await symlink('src/main.js', join(checkout, 'app/inner.js'));
    const found = await entries();
    expect(found).toMatchObject({
      'leak.txt': `-> ${join(home, 'secret.txt')}`,
      leaks: `-> ${home}`,
      'inner.js': '-> src/main.js',
    });
    expect(JSON.stringify(found)).not.toContain('outside');
    expect(Object.keys(found).filter((name) => name.startsWith('leaks/'))).toEqual([]);
  });

  test('what .dockerignore names stays out, exceptions and the Dockerfile stay in', async () => {
    await mkdir(join(checkout, 'app/logs'));
    await writeFile(join(checkout, 'app/logs/a.log'), 'a');
    await writeFile(join(checkout, 'app/logs/keep.log'), 'keep');
    await writeFile(join(checkout, 'app/.dockerignore'), 'logs\n!logs/keep.log\nDockerfile\n# comment\n**/*.js\n');
    const names = Object.keys(await entries());
    expect(names).toContain('logs/keep.log');
    expect(names).toContain('Dockerfile');
    expect(names).not.toContain('logs/a.log');
    expect(names).not.toContain('src/main.js');
  });

  test('a .dockerignore that is a link counts where it leads to a file of the repository, and is refused elsewhere', async () => {
    await writeFile(join(checkout, 'ignore'), 'src\n');
    await symlink('../ignore', join(checkout, 'app/.dockerignore'));
    expect(Object.keys(await entries())).toEqual(['Dockerfile', '.dockerignore']);
    await writeFile(join(home, 'ignore'), 'src\n');
    await rm(join(checkout, 'app/.dockerignore'));
    await symlink(join(home, 'ignore'), join(checkout, 'app/.dockerignore'));
    await expect(entries()).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('.dockerignore is a link that leads out'),
    });
  });

  test('the Dockerfile’s own ignore file stands before the common one', async () => {
    await writeFile(join(checkout, 'app/.dockerignore'), 'src\n');
    await writeFile(join(checkout, 'app/Dockerfile.dockerignore'), 'nothing\n');
    expect(Object.keys(await entries())).toContain('src/main.js');
  });

  test('a Dockerfile beside the context goes in under another name', async () => {
    await writeFile(join(checkout, 'Other'), 'FROM other\n');
    expect(await find('app', '../Other')).toMatchObject({ dockerfileName: '.quarterdeck.Dockerfile' });
    expect(await entries('app', '../Other')).toMatchObject({ '.quarterdeck.Dockerfile': 'FROM other\n' });
  });

  test('the whole checkout is the context for `/`, `.` and an empty path', async () => {
    for (const root of ['/', '.', ''])
      expect(await find(root, 'app/Dockerfile')).toMatchObject({ dockerfileName: 'app/Dockerfile' });
  });
});

describe('paths that leave the repository', () => {
  test.each([
    ['..', 'Dockerfile'],
    ['app/../../', 'secret.txt'],
    ['app', '../../secret.txt'],
    ['/', '../secret.txt'],
  ])('root path %s with Dockerfile %s is refused', async (root, dockerfile) => {
    await expect(find(root, dockerfile)).rejects.toMatchObject({ code: 'refused' });
  });

  test('a Dockerfile or context folder behind a link that leads out is refused', async () => {
    await symlink(join(home, 'secret.txt'), join(checkout, 'Linked'));
    await symlink(home, join(checkout, 'out'));
    await expect(find('/', 'Linked')).rejects.toMatchObject({ code: 'refused' });
    await expect(find('out', 'secret.txt')).rejects.toMatchObject({ code: 'refused' });
  });

  test('a sibling folder whose name begins alike is outside', async () => {
    await mkdir(join(home, 'checkout-2'));
    await writeFile(join(home, 'checkout-2/Dockerfile'), 'FROM scratch\n');
    await expect(find('../checkout-2', 'Dockerfile')).rejects.toMatchObject({ code: 'refused' });
  });

  test('a link within the repository is followed', async () => {
    await symlink('app', join(checkout, 'alias'));
    await symlink('Dockerfile', join(checkout, 'app/Linked'));
    expect(await find('alias', 'Dockerfile')).toMatchObject({ dockerfileName: 'Dockerfile' });
    expect(await find('app', 'Linked')).toMatchObject({ dockerfileName: '.quarterdeck.Dockerfile' });
  });

  test('a path that is not there is named', async () => {
    await expect(find('app', 'missing/Dockerfile')).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('missing/Dockerfile'),
    });
    await expect(find('nowhere', 'Dockerfile')).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('nowhere'),
    });
    await expect(find('app', 'src')).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringContaining('not a file'),
    });
  });
});
