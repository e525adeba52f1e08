export { createExpand } from '#services/capabilities/service/variables/expand.ts';
export { mainVariableRoutes } from '#services/capabilities/service/variables/main-routes.ts';
export { secretRoutes, variableRoutes } from '#services/capabilities/service/variables/routes.ts';
export { freezeVariables, listLostSecrets, thawVariables } from '#services/capabilities/service/variables/snapshot.ts';
export { recordOutputs } from '#services/capabilities/service/variables/outputs.ts';
export { placeOf } from '#services/capabilities/service/variables/line.ts';
export { aliasVariable, removeVariable } from '#services/capabilities/service/variables/service.ts';
export { removeUnusedSecretVersions } from '#services/capabilities/service/variables/housekeeping.ts';
export {
  databasePasswordPlace,
  findEnvironmentSurroundings,
} from '#services/capabilities/service/variables/built-ins.ts';
export { copyVariables, listCopiedSecrets, type VariableCopy } from '#services/capabilities/service/variables/copy.ts';
export { listWrittenVariables, type WrittenVariable } from '#services/capabilities/service/variables/export.ts';
export type { StoredDatabaseAccess } from '#services/capabilities/service/variables/queries.ts';
