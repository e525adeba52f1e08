import { badRequest } from '#kernel/errors.ts';

/** Image (or chart) in a registry, as the registry's HTTP interface names it. */
export interface ImageReference {
  /** Origin of the registry's interface. */
  base: string;
  name: string;
  /** Tag or digest. */
  tag: string;
  /** Text as people write it. */
  text: string;
}

const HUB = 'https://registry-1.docker.io';
/** Host names that stand for Docker Hub; only registry-1.docker.io serves its interface. */
const HUB_HOSTS = new Set([
  'docker.io',
  'index.docker.io',
  'hub.docker.com',
  'registry-1.docker.io',
  'registry.hub.docker.com',
]);
const HUB_NAME = 'docker.io';

/** Parsed address of a registry: `https://registry.gitlab.com/group` is the host and the prefix `group` of all names in it. */
export interface RegistryAddress {
  /** Origin of its HTTP interface. */
  base: string;
  /** First part of an image's name: `docker.io`, `registry.acme.net:5000`. */
  host: string;
  /** Prefix of the names of images in it, without slashes at its ends; empty for none. */
  prefix: string;
}

/** Reads a registry's address: a URL (http, https or oci), or a host with or without a path. Throws 400 for anything else. */
export function parseRegistry(address: string): RegistryAddress {
  const schemed = address.replace(/^oci:\/\//, '');
  const text = /^https?:\/\//.test(schemed) ? schemed : `${schemeOf(schemed)}://${schemed}`;
  if (!URL.canParse(text)) throw badRequest(`${address} is not the address of a registry.`);
  const url = new URL(text);
  const hub = HUB_HOSTS.has(url.hostname);
  // `https://index.docker.io/v1/` is what Docker's own files say: the version is no part of any name.
  const prefix = url.pathname.replace(/^\/v[12](?=\/|$)/, '').replace(/^\/+|\/+$/g, '');
  return { base: hub ? HUB : url.origin, host: hub ? HUB_NAME : url.host, prefix };
}

/** Returns the scheme by Docker's own rule: http for the machine itself, https for everything else, unless the URL says otherwise. */
function schemeOf(registry: string): 'http' | 'https' {
  return /^(localhost|127\.\d+\.\d+\.\d+)(:\d+)?(\/|$)/.test(registry) ? 'http' : 'https';
}

/** Host of a registry as images are named by it: `docker.io` for each spelling of Docker Hub. */
export const registryHost = (url: string): string => parseRegistry(url).host;

/** Returns whether the registry is Docker Hub, which has no catalog, and has official images in `library/`. */
export const isDockerHub = (base: string): boolean => base === HUB;

/**
 * The name of an image within a registry: without the registry's host, with its prefix, and for Docker Hub with `library/`
 * before a bare name.
 */
export function nameWithin({ base, prefix }: RegistryAddress, imageName: string): string {
  const [first = '', ...rest] = imageName.split('/');
  const own = rest.length > 0 && namesHost(first) && parseRegistry(first).base === base;
  const bare = own ? rest.join('/') : imageName;
  const name = prefix === '' || bare === prefix || bare.startsWith(`${prefix}/`) ? bare : `${prefix}/${bare}`;
  return isDockerHub(base) && !name.includes('/') ? `library/${name}` : name;
}

/** Locates an image: in the given registry, else in the one that its first part names, else on Docker Hub. */
export function locateImage(imageName: string, tag: string, registryUrl: string | null): ImageReference {
  const separator = isDigest(tag) ? '@' : ':';
  const text = `${imageName}${separator}${tag}`;
  const [first = '', ...rest] = imageName.split('/');
  const own = rest.length > 0 && namesHost(first) ? first : HUB_NAME;
  const registry = parseRegistry(registryUrl ?? own);
  return { base: registry.base, name: nameWithin(registry, imageName), tag, text };
}

/** Returns the name by which an engine pulls an image of a registry: `registry.acme.net/team/app`, `docker.io/library/nginx`. */
export function imageReference(registryUrl: string, imageName: string): string {
  const registry = parseRegistry(registryUrl);
  return `${registry.host}/${nameWithin(registry, imageName)}`;
}

/** Returns whether the first part of a name is a host, by Docker's rule. */
const namesHost = (first: string): boolean => first.includes('.') || first.includes(':') || first === 'localhost';

/** Returns whether the version of an image is a digest. */
export const isDigest = (reference: string): boolean => /^sha256:[0-9a-f]{64}$/.test(reference);
