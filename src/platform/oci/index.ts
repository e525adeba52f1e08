export type { RegistryClient } from '#platform/oci/client.ts';
export { RegistryError, registryProblem } from '#platform/oci/errors.ts';
export {
  imageReference,
  isDigest,
  locateImage,
  nameWithin,
  parseRegistry,
  registryHost,
} from '#platform/oci/reference.ts';
export {
  findImage,
  listNames,
  openRegistry,
  searchImages,
  type FoundImage,
  type RegistryAccess,
} from '#platform/oci/search.ts';
export type { Credentials } from '#platform/oci/session.ts';
