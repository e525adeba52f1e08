import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import type { HttpClient } from '#platform/http-client/index.ts';
import { createBaseImages } from '#services/images/base-images.ts';
import { ok, useApp } from '#test/harness/app.ts';

const app = useApp();

/** Reads the base image of a registry whose image has the configuration. */
async function read(configuration: string) {
  return readWith((await app.organization()).organizationId, configuration);
}

async function readWith(organizationId: string, configuration: string, isUntrusted = false) {
  const digest = `sha256:${createHash('sha256').update(configuration).digest('hex')}`;
  const manifest = JSON.stringify({ config: { digest }, layers: [], annotations: { any: 'text' } });
  const request = async (url: string) => ({
    status: 200,
    headers: {},
    body: Buffer.from(url.includes('/manifests/') ? manifest : configuration),
    truncated: false,
  });
  const { signal } = new AbortController();
  const readImage = createBaseImages(app.platform, { request } as unknown as HttpClient);
  return readImage({
    organizationId,
    isUntrusted,
    name: 'registry.example.com/base:1',
    platform: 'linux/amd64',
    signal,
  });
}

test.each([
  ['{"config":{"OnBuild":["RUN one","COPY . ."]}}', ['RUN one', 'COPY . .']],
  ['{"config":{"OnBuild":null}}', []],
  ['{"config":null}', []],
  [JSON.stringify({ config: { OnBuild: ['RUN two'] }, history: [{ created_by: 'x'.repeat(1_500_000) }] }), ['RUN two']],
])('the triggers of a base image are found in its configuration', async (configuration, onBuild) => {
  expect(await read(configuration)).toMatchObject({ onBuild });
});

test.each([
  ['{"config":{"OnBuild":["RUN one"]},"config":{}}', 'its key "config" is repeated'],
  ['{"config":{"onbuild":["RUN one"]}}', 'its key "onbuild" must be written "OnBuild"'],
  ['{"config":{"OnBuild":["RUN one",5]}}', 'its OnBuild must be a list of texts'],
  ['{"config":', 'it is not JSON'],
])('a configuration whose triggers builders may see in another way is refused: %s', async (configuration, problem) => {
  await expect(read(configuration)).rejects.toThrow(`the configuration of registry.example.com/base:1: ${problem}`);
});

test('the code of a fork is built upon images that need no credentials', async () => {
  const admin = await app.organization();
  const { organizationId } = admin;
  const config = { username: 'ada', password: 'the-password' };
  const registry = { name: newId(), kind: 'GENERIC_CR', url: 'https://registry.example.com', config };
  ok(await admin.post(`/organization/${organizationId}/containerRegistry`, registry), 201);
  expect((await readWith(organizationId, '{"config":null}')).registry).toMatchObject(config);
  expect((await readWith(organizationId, '{"config":null}', true)).registry).toBeNull();
});
