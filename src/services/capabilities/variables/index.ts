export { mainVariableRoutes } from '#services/capabilities/variables/main-routes.ts';
export { secretRoutes, variableRoutes } from '#services/capabilities/variables/routes.ts';
export {
  createThaw,
  freezeVariables,
  listLostSecrets,
  thawVariables,
} from '#services/capabilities/variables/snapshot.ts';
export { recordOutputs, withOutputs, type Output } from '#services/capabilities/variables/outputs.ts';
export { placeOf } from '#services/capabilities/variables/line.ts';
export { aliasVariable, removeVariable } from '#services/capabilities/variables/service.ts';
export { removeUnusedSecretVersions } from '#services/capabilities/variables/housekeeping.ts';
export {
  databasePasswordPlace,
  findEnvironmentSurroundings,
  type StoredDatabaseAccess,
} from '#services/capabilities/variables/built-ins.ts';
export { copyVariables, listCopiedSecrets, type VariableCopy } from '#services/capabilities/variables/copy.ts';
export { listWrittenVariables, type WrittenVariable } from '#services/capabilities/variables/export.ts';
