import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inspectDockerfile } from '#kernel/parsing/dockerfile-facts.ts';

test('a Dockerfile tells its arguments and the images from outside, each once', () => {
  expect(
    inspectDockerfile(
      [
        'ARG VERSION=20 REGISTRY',
        'FROM --platform=linux/amd64 registry.acme.net:5000/base/node:${VERSION}-slim AS Build',
        'ARG TOKEN',
        'ARG VERSION',
        'COPY --from=ghcr.io/acme/tools@sha256:abc /bin/x /bin/x',
        'FROM ${REGISTRY}/other AS unknown',
        'FROM scratch',
        'COPY --from=build /app /app',
        'COPY --from=0 /a /b',
        'COPY . .',
        'FROM nginx',
      ].join('\n'),
    ),
  ).toEqual({
    args: ['VERSION', 'REGISTRY', 'TOKEN'],
    secrets: [],
    repositories: ['registry.acme.net:5000/base/node', 'nginx', 'ghcr.io/acme/tools'],
  });
});

test('an argument in an image may have its default there', () => {
  expect(inspectDockerfile('FROM node:${VERSION:-20}')!.repositories).toEqual(['node']);
  expect(inspectDockerfile('FROM $BASE')!.repositories).toEqual([]);
});

test('a text without FROM is no Dockerfile, and no text makes the reading fail', () => {
  expect(inspectDockerfile('# nothing\nRUN ls')).toBeNull();
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom('FROM', 'FROM $', 'ARG', 'ARG =', 'COPY --from=', 'FROM a:@', 'FROM ${'),
  );
  fc.assert(fc.property(fc.array(line), (lines) => void inspectDockerfile(lines.join('\n'))));
});
