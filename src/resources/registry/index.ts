export { createRepository, findRegistry, findRegistryOf, registryAccess } from '#resources/registry/access.ts';
export { credentialFields } from '#resources/registry/configuration.ts';
export { keep, type KindShape } from '#resources/registry/keeping.ts';
export { availableOf, deleteUnused, toKeptView } from '#resources/registry/kept.ts';
export { ECR, REGISTRY_KINDS, SCALEWAY } from '#resources/registry/kinds.ts';
export { loginOf } from '#resources/registry/login.ts';
export { registryTarget } from '#resources/registry/target.ts';
export { registryRoutes } from '#resources/registry/routes.ts';
export { openSecrets } from '#resources/registry/secrets.ts';
