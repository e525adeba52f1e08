import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import type { Images } from '#services/images/registry-images.ts';
import type { OrganizationSources } from '#services/sources/sources.ts';
import type { Sources } from '#deployments/index.ts';

type Real = OrganizationSources & Images;

const hash = (algorithm: 'sha1' | 'sha256', ...parts: string[]): string =>
  createHash(algorithm).update(parts.join('\n')).digest('hex');

/**
 * Makes the sources for the fake runtime. It reads repositories of this machine, and images whose names begin with one of its loopback
 * addresses; others are never asked. Uploaded folders are real. The same address always stands for the same commit or image, and a
 * checkout of it is an empty folder.
 */
export const createPretendedSources = (real: Real): Sources => ({
  resolve: (request) => (isHere(request.url) ? real.resolve(request) : Promise.resolve(commitOf(request))),
  findUploaded: (request) => real.findUploaded(request),
  checkout: async (request) => {
    if (isHere(request.url) || request.uploadedFor !== undefined) return real.checkout(request);
    await mkdir(request.directory, { recursive: true });
    request.log('The fake runtime clones nothing.');
  },
  resolveImage: (request) => {
    const { registryId, name, tag } = request;
    if (isHere(`https://${name}`)) return real.resolveImage(request);
    const digest = tag.startsWith('sha256:') ? tag : `sha256:${hash('sha256', registryId, name, tag)}`;
    return Promise.resolve(`${name}@${digest}`);
  },
  resolveChart: ({ repositoryId, name, version }) => Promise.resolve(hash('sha256', repositoryId, name, version)),
  fetchChart: ({ file }) => writeFile(file, ''),
  registryAccess: () => Promise.resolve(null),
  resolveBase: ({ name }) =>
    Promise.resolve({
      reference: name.includes('@') ? name : `${name}@sha256:${hash('sha256', name)}`,
      onBuild: [],
      registry: null,
    }),
  checkHost: () => Promise.resolve(),
});

/** Tells whether a URL is a folder of this machine, or a server on its loopback addresses. */
const isHere = (url: string): boolean =>
  url.startsWith('/') || url.startsWith('file:') || /^https?:\/\/(?:localhost|127\.[\d.]+|\[::1\])[:/]/.test(url);

const commitOf = ({ url, branch, commitId }: { url: string; branch: string; commitId: string | null }) => ({
  id: commitId?.length === 40 ? commitId : hash('sha1', url, branch, commitId ?? ''),
  date: '2026-01-01T00:00:00.000Z',
  author: 'fake',
  message: `${branch} of ${url}`,
  tag: '',
});
