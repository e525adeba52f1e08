import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { createHttpClient } from '#platform/http-client/index.ts';
import { findImage, openRegistry, searchImages } from '#platform/oci/index.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';

const organizationId = newId();
const accessTo = ({ url, credentials }: TestRegistry) => ({ organizationId, url, credentials });
const http = createHttpClient({ allowedPrivateAddresses: ['127.0.0.0/8'] });

describe.each(['none', 'htpasswd', 'token'] as const)('a real registry that wants %s', (auth) => {
  let registry: TestRegistry;
  let digest: string;
  beforeAll(async () => {
    registry = await startRegistry({ auth });
    digest = await registry.pushImage('team/app', '1.0');
    await registry.pushImage('team/app', '1.1');
  });
  afterAll(() => registry?.stop());
  const open = () => openRegistry(http, accessTo(registry));

  test('lets us in', () => expect(open().ping()).resolves.toBeUndefined());

  test('tells the digest of a tag, and of a digest itself', async () => {
    expect(await open().resolveDigest('team/app', '1.0')).toBe(digest);
    expect(await open().resolveDigest('team/app', digest)).toBe(digest);
  });

  test('tells the digest of an index, not of one of its platforms', async () => {
    const index = await registry.pushIndex('team/multi', '2');
    expect(await open().resolveDigest('team/multi', '2')).toBe(index);
    expect((await open().manifest('team/multi', '2')).mediaType).toBe('application/vnd.oci.image.index.v1+json');
  });

  test('gives a manifest and a small blob of it', async () => {
    const client = open();
    const { content } = await client.manifest('team/app', '1.0');
    const config = content['config'] as { digest: string };
    expect(JSON.parse(String(await client.blob('team/app', config.digest, 10_000)))).toMatchObject({ os: 'linux' });
    await expect(client.blob('team/app', config.digest, 10)).rejects.toMatchObject({ failure: 'unexpected' });
  });

  test('has not what was never pushed', async () => {
    await expect(open().resolveDigest('team/app', '9')).rejects.toMatchObject({ failure: 'not_found' });
    await expect(open().resolveDigest('team/none', '1')).rejects.toMatchObject({ failure: 'not_found' });
    await expect(open().resolveDigest('../etc', '1')).rejects.toMatchObject({ failure: 'not_found' });
    expect(await findImage(http, accessTo(registry), 'team/none')).toBeUndefined();
  });

  test('lists images by name with their tags', async () => {
    expect(await findImage(http, accessTo(registry), 'team/app')).toEqual({
      name: 'team/app',
      versions: ['1.0', '1.1'],
    });
    expect((await searchImages(http, accessTo(registry), 'AP')).map(({ name }) => name)).toEqual(['team/app']);
    expect(await searchImages(http, { ...accessTo(registry), url: `${registry.url}/team` }, 'app')).toEqual([
      { name: 'app', versions: ['1.0', '1.1'] },
    ]);
  });

  test.skipIf(auth === 'none')('refuses nobody and a wrong password, and says so', async () => {
    for (const credentials of [null, { username: 'ada', password: 'wrong-password' }]) {
      const asked = openRegistry(http, { ...accessTo(registry), credentials });
      const error = await asked.resolveDigest('team/app', '1.0').catch((thrown: unknown) => thrown as Error);
      expect(error).toMatchObject({ failure: 'unauthorized' });
      expect((error as Error).message).not.toContain('wrong-password');
    }
    const wrong = { ...accessTo(registry), credentials: { username: 'ada', password: 'wrong-password' } };
    await expect(searchImages(http, wrong, 'app')).rejects.toMatchObject({ failure: 'unauthorized' });
    await expect(findImage(http, wrong, 'team/app')).rejects.toMatchObject({ failure: 'unauthorized' });
  });
});

test('a list of a real registry is read page after page', async () => {
  const registry = await startRegistry();
  onTestFinished(() => registry.stop());
  const tags = Array.from({ length: 205 }, (_, n) => `v${String(n).padStart(3, '0')}`);
  for (const tag of tags) await registry.pushImage('many', tag, { files: { 'hello.txt': 'the same' } });
  expect(await openRegistry(http, accessTo(registry)).tags('many')).toEqual(tags);
  for (let n = 0; n < 105; n++) await registry.pushImage(`of/${n}`, '1', { files: { 'hello.txt': 'the same' } });
  expect(await openRegistry(http, accessTo(registry)).catalog((name) => name.startsWith('of/'), 200)).toHaveLength(105);
});
