import { expect, test } from 'vitest';
import { imageReference, locateImage, registryHost } from '#platform/oci/index.ts';

test.each([
  ['nginx', null, 'https://registry-1.docker.io', 'library/nginx'],
  ['acme/app', null, 'https://registry-1.docker.io', 'acme/app'],
  ['docker.io/acme/app', null, 'https://registry-1.docker.io', 'acme/app'],
  ['ghcr.io/acme/app', null, 'https://ghcr.io', 'acme/app'],
  ['localhost:5000/app', null, 'http://localhost:5000', 'app'],
  ['app', 'https://registry.acme.net', 'https://registry.acme.net', 'app'],
  ['registry.acme.net/team/app', 'https://registry.acme.net/', 'https://registry.acme.net', 'team/app'],
  ['nginx', 'https://docker.io', 'https://registry-1.docker.io', 'library/nginx'],
  ['nginx', 'https://index.docker.io/v1/', 'https://registry-1.docker.io', 'library/nginx'],
  ['app', 'docker.io/acme', 'https://registry-1.docker.io', 'acme/app'],
  ['app', 'https://registry.gitlab.com/group/project', 'https://registry.gitlab.com', 'group/project/app'],
  ['group/project/app', 'registry.gitlab.com/group/project/', 'https://registry.gitlab.com', 'group/project/app'],
  ['app', 'oci://127.0.0.1:5000/charts', 'http://127.0.0.1:5000', 'charts/app'],
])('the image %s in registry %s is found at %s as %s', (image, registry, base, name) =>
  expect(locateImage(image, '1', registry)).toEqual({ base, name, tag: '1', text: `${image}:1` }),
);

test.each([
  ['https://docker.io', 'nginx', 'docker.io/library/nginx'],
  ['https://registry-1.docker.io', 'acme/app', 'docker.io/acme/app'],
  ['https://registry.acme.net:5000/team', 'app', 'registry.acme.net:5000/team/app'],
  ['http://127.0.0.1:5000', '127.0.0.1:5000/app', '127.0.0.1:5000/app'],
])('an engine pulls from %s the image %s as %s', (url, image, text) => {
  expect(imageReference(url, image)).toBe(text);
  expect(text.startsWith(`${registryHost(url)}/`)).toBe(true);
});
