export { findRegistry, registryAccess } from '#resources/registry/access.ts';
export {
  credentialFields,
  readConfiguration,
  refuseMoved,
  requiredConfig,
  type CredentialShape,
} from '#resources/registry/configuration.ts';
export { ECR, SCALEWAY } from '#resources/registry/kinds.ts';
export { loginOf } from '#resources/registry/login.ts';
export { registryRoutes } from '#resources/registry/routes.ts';
export { openSecrets, sealSecrets } from '#resources/registry/secrets.ts';
